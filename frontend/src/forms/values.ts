import { isRecord, type Node, type ObjectNode, type UnionNode } from "./schema.ts";

/** What the user has set: only what differs from the defaults, in the configuration's own shape. */
export type Values = Record<string, unknown>;

/** For each union, what was entered under each kind, so that switching there and back loses nothing. */
export type UnionMemory = Record<string, Record<string, Values>>;

export interface FormState {
  values: Values;
  memory: UnionMemory;
}

export function getAt(values: unknown, path: string[]): unknown {
  return path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), values);
}

/** A copy with the value at the path; undefined takes it away, and objects that become empty go with it. */
export function setAt(values: Values, path: string[], value: unknown): Values {
  const [key, ...rest] = path;
  if (key === undefined) return isRecord(value) ? value : {};
  const child = rest.length === 0 ? value : setAt(isRecord(values[key]) ? values[key] : {}, rest, value);
  const { [key]: _, ...others } = values;
  const isEmpty =
    child === undefined || (rest.length > 0 && isRecord(child) && Object.keys(child).length === 0);
  return isEmpty ? others : { ...others, [key]: child };
}

export function kindOf(node: UnionNode, values: Values): string {
  const value = getAt(values, node.path);
  const kind = isRecord(value) ? value[node.discriminator] : undefined;
  return typeof kind === "string" ? kind : node.defaultKind;
}

/**
 * Chooses another variant, keeping what was entered under the former one for the way back. At the first visit the new
 * one takes over what it knows too, as the server does for a clone.
 */
export function switchKind(state: FormState, node: UnionNode, kind: string): FormState {
  const at = node.path.join("/");
  const remembered = state.memory[at] ?? {};
  const current = getAt(state.values, node.path);
  const memory = {
    ...state.memory,
    [at]: { ...remembered, [kindOf(node, state.values)]: isRecord(current) ? current : {} },
  };
  const { [node.discriminator]: _, ...entered } = remembered[kind] ?? sharedWith(node, kind, state.values);
  const isDefault = kind === node.defaultKind && Object.keys(entered).length === 0;
  const value = isDefault ? undefined : { [node.discriminator]: kind, ...entered };
  return { values: setAt(state.values, node.path, value), memory };
}

/** What was entered that the other variant knows; no texts, for they name folders of one kind of model. */
function sharedWith(node: UnionNode, kind: string, values: Values): Values {
  const known = node.variants.find((variant) => variant.kind === kind)?.fields ?? [];
  const former = node.variants.find((variant) => variant.kind === kindOf(node, values))?.fields ?? [];
  const current = getAt(values, node.path);
  // Variants may differ in the default kind of a union inside, so that it goes with its tag.
  const entered = isRecord(current) ? fillFields(former, current) : {};
  const entries = known
    .filter((field) => field.type !== "text")
    .map((field) => [field.key, entered[field.key]] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Takes away what equals the defaults: a whole configuration becomes what was changed in it. */
export function withoutDefaults(node: ObjectNode, config: unknown): Values {
  return (sparseOf(node, config) as Values | undefined) ?? {};
}

function sparseOf(node: Node, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (node.type === "object") return sparseFields(node.fields, value, {});
  if (node.type === "union") return sparseUnion(node, value);
  return value === (node.defaultValue ?? null) ? undefined : value;
}

function sparseUnion(node: UnionNode, value: unknown): unknown {
  if (!isRecord(value)) return value;
  const kind = String(value[node.discriminator] ?? node.defaultKind);
  const fields = node.variants.find((variant) => variant.kind === kind)?.fields ?? [];
  const tag = { [node.discriminator]: kind };
  return sparseFields(fields, value, tag) ?? (kind === node.defaultKind ? undefined : tag);
}

function sparseFields(fields: Node[], value: unknown, tag: Values): Values | undefined {
  const entries = fields
    .map((field) => [field.key, sparseOf(field, getAt(value, [field.key]))] as const)
    .filter(([, sparse]) => sparse !== undefined);
  return entries.length > 0 ? { ...tag, ...Object.fromEntries(entries) } : undefined;
}

/** Adds the tag of each union that has entries, or must have some: the server needs it to know the variant. */
export function withKinds(node: ObjectNode, values: Values): Values {
  return fillFields(node.fields, values);
}

function fillFields(fields: Node[], values: Values): Values {
  const filled = { ...values };
  for (const field of fields) {
    const value = values[field.key] ?? (field.type === "union" && field.isRequired ? {} : undefined);
    if (!isRecord(value)) continue;
    if (field.type === "object") filled[field.key] = fillFields(field.fields, value);
    if (field.type === "union") filled[field.key] = fillUnion(field, value);
  }
  return filled;
}

function fillUnion(node: UnionNode, value: Values): Values {
  const kind = String(value[node.discriminator] ?? node.defaultKind);
  const fields = node.variants.find((variant) => variant.kind === kind)?.fields ?? [];
  return { [node.discriminator]: kind, ...fillFields(fields, value) };
}
