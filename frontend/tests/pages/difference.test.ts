import { expect, test } from "vitest";
import { difference, notableDifference } from "../../src/pages/run/config/difference.ts";
import { root } from "../forms/run-config.ts";

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

test("where kinds differ, what either has by default goes without saying", () => {
  const before = {
    seed: 1,
    task: { kind: "arithmetic", num_terms: 5, max_term: 99 },
    rollout: { kind: "torch", num_engines: 1 },
  };
  const after = {
    seed: 2,
    task: {
      kind: "dataset",
      train: { kind: "hub", name: "org/data", split: "train", subset: null },
      reward: { kind: "math", timeout_s: 10, num_processes: 8 },
    },
    rollout: { kind: "vllm", num_engines: 4, tensor_parallel_size: 1 },
  };
  expect(notableDifference(root, before, after)).toEqual([
    { path: "seed", before: 1, after: 2 },
    { path: "task.kind", before: "arithmetic", after: "dataset" },
    { path: "task.num_terms", before: 5, after: undefined },
    { path: "task.train.kind", before: undefined, after: "hub" },
    { path: "task.train.name", before: undefined, after: "org/data" },
    { path: "task.reward.kind", before: undefined, after: "math" },
    { path: "task.reward.num_processes", before: undefined, after: 8 },
    { path: "rollout.kind", before: "torch", after: "vllm" },
    { path: "rollout.num_engines", before: 1, after: 4 },
  ]);
});
