import { expect, test } from "vitest";
import { expectedCharts } from "../../src/pages/run/expected-charts.ts";

const SERIES: Record<string, string[]> = {
  reward: ["reward/train_mean"],
  acceptance: ["rollout/acceptance_length_tokens", "draft/expected_acceptance_length_tokens"],
  draft_length: ["controller/draft_length_mean_tokens"],
  draft_loss: ["draft/loss_nats"],
  speedup: ["speedup/generation_ratio", "speedup/step_ratio"],
  step_time: ["time/generation_s", "speedup/generation_ratio"],
  losslessness: ["lossless/ks_distance", "lossless/ordered_ks_distance"],
  acceptance_test: ["lossless/acceptance_z_score", "lossless/num_tested_drafts"],
  warm_up: ["warm_up/loss_nats", "draft_pretraining/loss_nats"],
  held_out: ["draft_pretraining/held_out_acceptance_position_1_fraction"],
};
const figures = Object.entries(SERIES).map(([name, series]) => ({
  name,
  series,
  title: name,
  group: "",
  description: "",
}));

function shown(
  config: object,
  more: { job?: "draft_training"; latest?: Record<string, number>; is_ended?: boolean } = {},
) {
  const run = {
    job: "grpo" as const,
    latest: {},
    is_ended: false,
    config: config as Record<string, unknown>,
    ...more,
  };
  return expectedCharts(figures, run).map(({ name }) => name);
}

test("a run that trains its draft has all charts", () => {
  expect(shown({ drafter: { kind: "eagle3" }, probe: { interval_steps: 20 } })).toEqual(Object.keys(SERIES));
});

test("without a drafter nothing waits for drafts", () => {
  expect(shown({ drafter: { kind: "none" } })).toEqual(["reward", "step_time", "losslessness", "warm_up"]);
});

test("a drafter without weights has no draft training", () => {
  const missing = ["draft_loss", "held_out"];
  for (const kind of ["ngram", "suffix"]) {
    expect(shown({ drafter: { kind } })).toEqual(
      Object.keys(SERIES).filter((name) => !missing.includes(name)),
    );
  }
});

test("a probe that is switched off and a warm-up that is not needed leave no empty chart", () => {
  const config = { drafter: { kind: "ngram" }, probe: { interval_steps: 0 }, policy: { kind: "checkpoint" } };
  expect(shown(config)).not.toContain("speedup");
  expect(shown(config)).not.toContain("warm_up");
});

test("draft training shows its own charts alone", () => {
  expect(shown({ drafter: { kind: "mtp" } }, { job: "draft_training" })).toEqual(["warm_up", "held_out"]);
});

test("what was measured after all is shown", () => {
  expect(shown({ drafter: { kind: "none" } }, { latest: { "speedup/step_ratio": 1 } })).toContain("speedup");
});

test("a run that has ended shows what it measured, and waits for nothing", () => {
  const config = { drafter: { kind: "eagle3" } };
  expect(shown(config, { is_ended: true, latest: { "reward/train_mean": 1 } })).toEqual(["reward"]);
  expect(shown(config, { is_ended: true })).toEqual([]);
});

test("charts of GPUs wait only for runs that take some", () => {
  const hardware = [
    "hardware/gpu_0_power_w",
    "throughput/train_mfu_fraction",
    "hardware/node_0_cpu_fraction",
  ];
  const charts = hardware.map((name) => ({ name, series: [name], title: name, group: "", description: "" }));
  const names = (resources: object) =>
    expectedCharts(charts, { job: "grpo", latest: {}, is_ended: false, config: { resources } }).map(
      ({ name }) => name,
    );
  expect(names({ gpus_per_node: 8 })).toEqual(hardware);
  expect(names({ gpus_per_node: 0 })).toEqual(["hardware/node_0_cpu_fraction"]);
});

test("failures of scorers are waited for where a scorer can fail", () => {
  const series = ["reward/num_failures_raised"];
  const failures = [{ name: "reward_failures", title: "", group: "", description: "", series }];
  const isShown = (task: object) =>
    expectedCharts(failures, { job: "grpo", latest: {}, is_ended: false, config: { task } }).length === 1;
  expect(isShown({ kind: "dataset", reward: { kind: "math" } })).toBe(true);
  expect(isShown({ kind: "dataset", reward: { kind: "exact" } })).toBe(false);
  expect(isShown({ kind: "arithmetic" })).toBe(false);
});

test("the load of an engine waits only for engines with a queue", () => {
  const charts = [
    { name: "load", series: ["engine/num_running_requests"], title: "", group: "", description: "" },
  ];
  const names = (kind: string) =>
    expectedCharts(charts, { job: "grpo", latest: {}, is_ended: false, config: { rollout: { kind } } }).map(
      ({ name }) => name,
    );
  expect(names("vllm")).toEqual(["load"]);
  expect(names("torch")).toEqual([]);
});
