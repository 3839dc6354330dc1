import { labelsText } from "../pages/launch/draft.ts";

const MAX_LENGTH = 200;

/** A field's value as people read it. */
export function valueWords(value: unknown): string {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return cut(value.map(String).join(", ") || "nothing");
  if (typeof value === "object") return cut(labelsText(textValues(value)) || "nothing");
  return typeof value === "number" ? String(value) : cut(`“${value}”`);
}

function textValues(value: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      typeof inner === "string" ? inner : JSON.stringify(inner),
    ]),
  );
}

function cut(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}
