/** What a number field's text means: a number where it is one, nothing where it is empty, else the text as typed. */
export function parseNumber(text: string): number | string | undefined {
  const trimmed = text.trim().replace("−", "-");
  if (trimmed === "") return undefined;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : text;
}

/** A number in words: thousands grouped, no rounding. */
export function groupedText(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 20 }).replace("-", "−");
}

/** A stored number as text for a field: no grouping, no rounding. */
export function numberText(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}
