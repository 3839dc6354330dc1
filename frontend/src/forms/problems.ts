import type { Node, ObjectNode } from "./schema.ts";

/** One entry of a problem document's `errors`. */
export interface FieldProblem {
  pointer: string;
  detail: string;
  value?: unknown;
}

/** Messages by the pointer of the field that shows them. */
export type Problems = Record<string, string[]>;

export function pointerOf(path: string[]): string {
  return path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function pathOf(pointer: string): string[] {
  const keys = pointer.split("/").slice(1);
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/**
 * Puts the server's problems at the form's fields. Pointers are relative to the configuration once `prefix` is cut
 * off. A pointer that names a union's variant on the way, or something below a field, lands on the nearest field;
 * what lies outside the configuration keeps its pointer.
 */
export function placeProblems(root: ObjectNode, errors: FieldProblem[], prefix: string): Problems {
  const problems: Problems = {};
  for (const error of errors) {
    const isInside = error.pointer === prefix || error.pointer.startsWith(`${prefix}/`);
    const at = isInside
      ? pointerOf(nearest(root, pathOf(error.pointer.slice(prefix.length))))
      : error.pointer;
    const list = problems[at] ?? [];
    if (!list.includes(error.detail)) list.push(error.detail);
    problems[at] = list;
  }
  return problems;
}

function nearest(root: Node, keys: string[]): string[] {
  let node: Node = root;
  let variants: string[] = [];
  for (const key of keys) {
    const fields: Node[] = fieldsOf(node, variants);
    const next = fields.find((field) => field.key === key);
    if (next) {
      node = next;
      variants = [];
    } else if (node.type === "union" && node.variants.some((variant) => variant.kind === key)) {
      variants = [key];
    } else break;
  }
  return node.path;
}

function fieldsOf(node: Node, kinds: string[]): Node[] {
  if (node.type === "object") return node.fields;
  if (node.type !== "union") return [];
  const chosen = node.variants.filter((variant) => kinds.length === 0 || kinds.includes(variant.kind));
  return chosen.flatMap((variant) => variant.fields);
}

/** "1 problem" / "3 problems" is counted by message, not by field. */
export function countProblems(problems: Problems): number {
  return Object.values(problems).reduce((count, messages) => count + messages.length, 0);
}
