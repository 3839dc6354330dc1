import { expect, test } from "vitest";
import {
  type JsonSchema,
  type LeafNode,
  type Node,
  type ObjectNode,
  readSchema,
  type UnionNode,
} from "../../src/forms/schema.ts";
import { root } from "./run-config.ts";

function field(node: Node | undefined, key: string): Node {
  const fields =
    node?.type === "union" ? node.variants.flatMap((variant) => variant.fields) : (node as ObjectNode).fields;
  const found = fields.find((each) => each.key === key);
  if (!found) throw new Error(`no field ${key}`);
  return found;
}

test("constants, which nobody can choose, are no fields", () => {
  const keys = root.fields.map(({ key }) => key);
  expect(keys).toContain("grpo");
  expect(keys).not.toContain("schema_version");
  const variants = (field(root, "task") as UnionNode).variants;
  expect(variants.flatMap(({ fields }) => fields.map(({ key }) => key))).not.toContain("kind");
});

test("a discriminated union knows its variants, its default and what each means", () => {
  const drafter = field(root, "drafter") as UnionNode;
  expect(drafter).toMatchObject({ type: "union", discriminator: "kind", defaultKind: "eagle3" });
  expect(drafter.variants.map(({ kind }) => kind)).toEqual([
    "none",
    "eagle3",
    "mtp",
    "draft_model",
    "ngram",
    "suffix",
  ]);
  for (const { help } of drafter.variants) expect(help).not.toBe("");
});

test("numbers carry their default, limits and help", () => {
  const length = field(field(root, "drafter"), "draft_length") as LeafNode;
  expect(length).toMatchObject({ type: "integer", defaultValue: 6, limits: "1 to 16" });
  expect(length.path).toEqual(["drafter", "draft_length"]);
  expect(length.help).toMatch(/tokens/i);
});

test.each([
  [{ type: "integer", minimum: 0, maximum: 1_000_000 }, ""],
  [{ type: "integer", minimum: 2, maximum: 1_000_000 }, "2 to 1,000,000"],
  [{ type: "integer", minimum: 0, exclusiveMaximum: 2 ** 31 }, "0 to 2,147,483,647"],
  [{ type: "integer", minimum: 2048 }, "at least 2,048"],
  [{ type: "integer", exclusiveMinimum: 999 }, "at least 1,000"],
  [{ type: "number", exclusiveMinimum: 0, maximum: 1 }, "above 0, at most 1"],
  [{ type: "number", minimum: 0, exclusiveMaximum: 12_500.5 }, "at least 0, below 12,500.5"],
  [{ type: "number" }, ""],
])("the limits of %j are told as '%s'", (size: JsonSchema, limits) => {
  expect(field(readSchema({ properties: { size } }), "size")).toMatchObject({ limits });
});

test("an optional text and a choice are recognised", () => {
  expect(field(field(root, "drafter"), "path")).toMatchObject({
    type: "text",
    isNullable: true,
  });
  expect(field(field(root, "rollout"), "precision")).toMatchObject({
    type: "choice",
    choices: ["bfloat16", "float32"],
  });
});

test("a text that may have several lines is told from a path", () => {
  const train = field(field(root, "task"), "train");
  expect(field(train, "prompt_template")).toMatchObject({ type: "text", isLong: true });
  expect(field(train, "path")).toMatchObject({ type: "text", isLong: false, isRequired: true });
});

test("a union without a default must be filled in", () => {
  expect(field(field(root, "task"), "train")).toMatchObject({ isRequired: true, defaultKind: "jsonl" });
  expect(field(field(root, "task"), "reward")).toMatchObject({ isRequired: false, defaultKind: "math" });
});

test("every field of the real schema has a help text", () => {
  const leaves = (node: Node): Node[] => {
    if (node.type === "object") return node.fields.flatMap(leaves);
    return node.type === "union" ? node.variants.flatMap(({ fields }) => fields.flatMap(leaves)) : [node];
  };
  const silent = leaves(root).filter(({ help }) => help === "");
  expect(silent.map(({ path }) => path.join("."))).toEqual([]);
});

test("the default of the whole stands above the defaults of its parts", () => {
  const schema: JsonSchema = {
    properties: { part: { $ref: "#/$defs/Part", default: { size: 8 } } },
    $defs: { Part: { properties: { size: { type: "integer", default: 4 } } } },
  };
  expect(field(field(readSchema(schema), "part"), "size").defaultValue).toBe(8);
});

test("a reference to nowhere is an error that names it", () => {
  expect(() => readSchema({ properties: { a: { $ref: "#/$defs/Lost" } } })).toThrow("#/$defs/Lost");
});
