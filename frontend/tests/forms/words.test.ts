import { expect, test } from "vitest";
import { byImportance, kindLabelOf, labelOf, unitOf } from "../../src/forms/words.ts";

test.each([
  ["num_prompts_per_step", "Prompts per step", ""],
  ["num_steps", "Steps", ""],
  ["interval_steps", "Interval", "steps"],
  ["max_new_tokens", "Max new tokens", "tokens"],
  ["kl_penalty", "KL penalty", ""],
  ["draft_length", "Draft length", "tokens"],
  ["timeout_s", "Timeout", "s"],
  ["seed", "Seed", ""],
  ["draft_length_control", "Draft length control", ""],
  ["top_p", "Top-p", ""],
  ["top_k", "Top-k", "tokens"],
  ["max_stored_tokens", "Max stored tokens", "tokens"],
  ["gpu_memory_gib", "GPU memory", "GiB"],
  ["gpus_per_node", "GPUs per node", ""],
  ["bucket_mib", "Bucket", "MiB"],
  ["draft_vocabulary_size", "Draft vocabulary size", "tokens"],
])("%s is labelled %s with unit '%s'", (key, label, unit) => {
  expect([labelOf(key), unitOf(key)]).toEqual([label, unit]);
});

test("kinds are named as people name them", () => {
  expect([kindLabelOf("eagle3"), kindLabelOf("suffix")]).toEqual(["EAGLE-3", "Suffix"]);
  expect([kindLabelOf("none"), kindLabelOf("none", "recompute")]).toEqual(["None (autoregressive)", "None"]);
  expect([kindLabelOf("mtp"), kindLabelOf("draft_model")]).toEqual(["Multi-token prediction", "Draft model"]);
});

test("parts in front stand in the order of their questions, the others after them as they come", () => {
  const parts = ["probe", "resources", "drafter", "audit", "policy"].map((key) => ({ key }));
  expect(parts.toSorted(byImportance).map(({ key }) => key)).toEqual([
    "policy",
    "drafter",
    "resources",
    "probe",
    "audit",
  ]);
});
