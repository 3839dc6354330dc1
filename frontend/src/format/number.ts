const MISSING = "–";

/** Three significant digits, thousands grouped; a dash for what was not measured. */
export function formatNumber(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return MISSING;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3)
    return value
      .toExponential(digits - 1)
      .replace("-", "−")
      .replace("e−", "e−");
  const options =
    size >= 10 ** digits
      ? { maximumFractionDigits: 0 }
      : { minimumSignificantDigits: digits, maximumSignificantDigits: digits };
  return value.toLocaleString("en-US", size === 0 ? {} : options).replace("-", "−");
}

/** A count: no decimals, thousands grouped. */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** 0.412 -> "41.2 %". */
export function formatPercent(fraction: number | null | undefined): string {
  if (fraction === null || fraction === undefined) return MISSING;
  return `${formatNumber(fraction * 100)} %`;
}

/** With its sign, for a change: "+0.213", "−0.02", "±0". */
export function formatChange(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  if (Math.abs(value) < 5e-4) return "±0";
  return `${value > 0 ? "+" : "−"}${formatNumber(Math.abs(value), 2)}`;
}

/** 1 -> "1 run", 2 -> "2 runs". */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}
