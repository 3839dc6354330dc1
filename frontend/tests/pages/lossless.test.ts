import { expect, test } from "vitest";
import { judge } from "../../src/pages/run/lossless.ts";
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
