const MAX_LENGTH = 200;

/** A field's value as people read it. */
export function valueWords(value: unknown): string {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return cut(value.map(String).join(", ") || "nothing");
  if (typeof value === "object") return cut(Object.entries(value).map(entryWords).join(", ") || "nothing");
  return typeof value === "number" ? String(value) : cut(`“${value}”`);
}

function entryWords([key, value]: [string, unknown]): string {
  if (value === "") return key;
  return `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
}

function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}
