import { expect, test } from "vitest";
import { summarize } from "../../src/pages/launch/summary.ts";

const grpo = { num_steps: 40, num_prompts_per_step: 16, num_generations_per_prompt: 8 };
const policy = { kind: "scratch", num_layers: 6, hidden_size: 256 };
const drafterWords = (drafter: object) => summarize({ policy, grpo, drafter })[1];

test("the drafter is named with its k and how that is chosen", () => {
  expect(drafterWords({ kind: "none" })).toBe("no speculation");
  const lengths = { draft_length: 6, draft_length_control: "measured" };
  expect(drafterWords({ kind: "eagle3", ...lengths })).toBe("EAGLE-3, k up to 6, measured");
  expect(drafterWords({ kind: "suffix", draft_length: 3, draft_length_control: "fixed" })).toBe(
    "Suffix, k = 3",
  );
  expect(drafterWords({ kind: "ngram", draft_length: 3 })).toBe("N-gram, k = 3");
});

test("draft training is told by what it trains on, not by steps that it has not", () => {
  const drafter = { kind: "mtp", draft_length: 6, pretraining: { num_rollouts: 768, num_steps: 1200 } };
  expect(summarize({ job: "draft_training", policy, grpo, drafter })[3]).toBe(
    "draft training on 768 rollouts, 1,200 steps",
  );
  expect(summarize({ job: "grpo", policy, grpo, drafter })[3]).toBe("40 steps of 16 × 8 responses");
});

test("engine and trainer are named, once where they are the same", () => {
  const backends = (rollout: string, trainer: string) =>
    summarize({ policy, grpo, rollout: { kind: rollout }, trainer: { kind: trainer } })[2];
  expect(backends("vllm", "megatron")).toBe("vLLM and Megatron-core");
  expect(backends("torch", "torch")).toBe("PyTorch");
});
