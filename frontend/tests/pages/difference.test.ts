import { expect, test } from "vitest";
import { difference } from "../../src/pages/run/config/difference.ts";

test("settings that differ are named by their path", () => {
  const before = { seed: 1, drafter: { kind: "eagle3", draft_length: 3 }, task: { num_terms: 4 } };
  const after = { seed: 1, drafter: { kind: "none" }, task: { num_terms: 5 } };
  expect(difference(before, after)).toEqual([
    { path: "drafter.kind", before: "eagle3", after: "none" },
    { path: "drafter.draft_length", before: 3, after: undefined },
    { path: "task.num_terms", before: 4, after: 5 },
  ]);
});

test("equal configurations differ in nothing, whatever the order of their keys", () => {
  expect(difference({ a: { b: 1, c: [1, 2] } }, { a: { c: [1, 2], b: 1 } })).toEqual([]);
});
