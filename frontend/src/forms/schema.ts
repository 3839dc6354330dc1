import { groupedText } from "./number.ts";

/** The part of JSON Schema that the run configuration's schema uses. */
export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  title?: string;
  description?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  discriminator?: { propertyName: string; mapping?: Record<string, string> };
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
}

/** Characters of the longest text that is one line: a path. */
const LONGEST_LINE = 1000;

interface NodeBase {
  /** Where its value lies in the configuration. */
  path: string[];
  key: string;
  help: string;
  defaultValue: unknown;
}

export interface LeafNode extends NodeBase {
  type: "integer" | "number" | "text" | "boolean" | "choice";
  isNullable: boolean;
  isRequired: boolean;
  /** A text of several lines. */
  isLong: boolean;
  choices: (string | number)[];
  example: string;
  limits: string;
}

export interface ObjectNode extends NodeBase {
  type: "object";
  fields: Node[];
}

export interface UnionNode extends NodeBase {
  type: "union";
  discriminator: string;
  defaultKind: string;
  /** It has no default: its variant must be filled in. */
  isRequired: boolean;
  variants: { kind: string; help: string; fields: Node[] }[];
}

export type Node = LeafNode | ObjectNode | UnionNode;

/** Reads the schema of a run configuration into the tree of its fields. */
export function readSchema(root: JsonSchema): ObjectNode {
  const node = readNode(root, root, [], undefined, true);
  if (node?.type !== "object") throw new Error("The schema of the run configuration is not an object.");
  return node;
}

function readNode(
  root: JsonSchema,
  raw: JsonSchema,
  path: string[],
  inherited: unknown,
  isRequired: boolean,
): Node | null {
  const { schema, isNullable } = unwrapNullable(root, raw);
  const base: NodeBase = {
    path,
    key: path.at(-1) ?? "",
    help: raw.description ?? schema.description ?? "",
    defaultValue: inherited === undefined ? (raw.default ?? schema.default) : inherited,
  };
  if (schema.const !== undefined) return null;
  if (schema.oneOf && schema.discriminator) return readUnion(root, schema, base, isRequired);
  if (schema.properties)
    return { ...base, type: "object", fields: readFields(root, schema, path, base.defaultValue) };
  return readLeaf(schema, base, isNullable, isRequired);
}

function readFields(root: JsonSchema, schema: JsonSchema, path: string[], defaults: unknown): Node[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]) => {
    const inherited = isRecord(defaults) ? defaults[key] : undefined;
    const isRequired = schema.required?.includes(key) ?? false;
    return readNode(root, property, [...path, key], inherited, isRequired) ?? [];
  });
}

function readUnion(root: JsonSchema, schema: JsonSchema, base: NodeBase, isRequired: boolean): UnionNode {
  const discriminator = schema.discriminator?.propertyName ?? "kind";
  const ofKind = isRecord(base.defaultValue) ? base.defaultValue[discriminator] : undefined;
  const variants = (schema.oneOf ?? []).map((option) => {
    const variant = resolve(root, option);
    const kind = String(variant.properties?.[discriminator]?.const ?? "");
    const defaults = kind === ofKind ? base.defaultValue : undefined;
    return { kind, help: variant.description ?? "", fields: readFields(root, variant, base.path, defaults) };
  });
  return {
    ...base,
    type: "union",
    discriminator,
    defaultKind: String(ofKind ?? variants[0]?.kind),
    isRequired,
    variants,
  };
}

function readLeaf(schema: JsonSchema, base: NodeBase, isNullable: boolean, isRequired: boolean): LeafNode {
  const isLong = (schema.maxLength ?? 0) > LONGEST_LINE;
  const leaf = { ...base, isNullable, isRequired, isLong, example: String(schema.examples?.[0] ?? "") };
  if (schema.enum) {
    return { ...leaf, type: "choice", choices: schema.enum as (string | number)[], limits: "" };
  }
  const type = { integer: "integer", number: "number", boolean: "boolean" }[schema.type ?? ""] ?? "text";
  return { ...leaf, type: type as LeafNode["type"], choices: [], limits: describeLimits(schema) };
}

/** The largest count there is; the range of any count goes without saying. */
const MAX_COUNT = 1_000_000;

/** "1 to 16", "above 0", "at least 2,048": the allowed range in words. */
function describeLimits(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  // Whole numbers have no other next to an open end.
  const step = schema.type === "integer" ? 1 : 0;
  const low = minimum ?? (step && exclusiveMinimum !== undefined ? exclusiveMinimum + step : undefined);
  const high = maximum ?? (step && exclusiveMaximum !== undefined ? exclusiveMaximum - step : undefined);
  if (high === MAX_COUNT && low !== undefined && low <= 1) return "";
  if (low !== undefined && high !== undefined) return `${groupedText(low)} to ${groupedText(high)}`;
  const parts = [
    bound("at least", low) || bound("above", exclusiveMinimum),
    bound("at most", high) || bound("below", exclusiveMaximum),
  ];
  return parts.filter(Boolean).join(", ");
}

function bound(comparison: string, limit: number | undefined): string {
  return limit === undefined ? "" : `${comparison} ${groupedText(limit)}`;
}

function unwrapNullable(root: JsonSchema, raw: JsonSchema): { schema: JsonSchema; isNullable: boolean } {
  const schema = resolve(root, raw);
  const options = schema.anyOf;
  if (!options) return { schema, isNullable: false };
  const others = options.filter((option) => option.type !== "null");
  return { schema: resolve(root, others[0] ?? {}), isNullable: others.length < options.length };
}

/** Follows `$ref`; what stands beside the reference wins. */
function resolve(root: JsonSchema, schema: JsonSchema): JsonSchema {
  if (!schema.$ref) return schema;
  const { $ref, ...beside } = schema;
  const target = root.$defs?.[$ref.replace("#/$defs/", "")];
  if (!target) throw new Error(`The schema refers to ${$ref}, which it does not define.`);
  return { ...resolve(root, target), ...beside };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
