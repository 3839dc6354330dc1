import { expect, test } from "vitest";
import { judge, judgeByAlarms } from "../../src/pages/run/lossless.ts";
import { EMPTY_COLUMNS } from "../../src/series/columns.ts";

const columns = (value: (number | null)[]) => ({ ...EMPTY_COLUMNS, step: value.map((_, i) => i + 1), value });

test("nothing measured is no verdict", () => {
  expect(judge(undefined, undefined).state).toBe("unmeasured");
  expect(judge(columns([null]), columns([null])).state).toBe("unmeasured");
});

test("exact steps are lossless, with the latest distance", () => {
  expect(judge(columns([0.004, 0.006]), columns([0.7, 0.2]))).toEqual({
    state: "lossless",
    step: 2,
    distance: 0.006,
  });
});

test("a large distance with a tiny p-value is drift, named by its worst step also when later steps are fine", () => {
  const verdict = judge(columns([0.02, 0.2, 0.005]), columns([1e-6, 1e-90, 0.5]));
  expect(verdict).toEqual({ state: "drift", step: 2, distance: 0.2 });
});

test("a p-value that some step of a long run reaches by chance is not drift", () => {
  const steps = 100;
  const p = Array.from({ length: steps }, (_, i) => (i + 0.5) / steps);
  expect(judge(columns(p.map(() => 0.02)), columns(p)).state).toBe("lossless");
});

test("a significant distance too small to matter is numerics, not drift", () => {
  expect(judge(columns([0.002]), columns([1e-20])).state).toBe("lossless");
});

const drift = (step: number, ending: "cleared" | "undone" | null = null) => ({
  name: "distribution_drift",
  step,
  ending,
});

test("the audit's alarm says drift, from the first step on and also once it is cleared", () => {
  const verdict = judgeByAlarms([drift(20), drift(7, "cleared")], columns([0.004, 0.3]), columns([0, 5]));
  expect(verdict).toEqual({ state: "drift", step: 7, distance: 0.3 });
});

test("with evidence and without a drift that stands the run is lossless", () => {
  const others = [drift(9, "undone"), { name: "no_speedup", step: 3, ending: null }];
  const verdict = judgeByAlarms(others, columns([0.004, 0.006]), columns([0, -0.3]));
  expect(verdict).toEqual({ state: "lossless", step: 2, distance: 0.006 });
});

test("a run without a sequential test is judged by its steps", () => {
  expect(judgeByAlarms([], columns([0.004]), undefined)).toBeNull();
});
