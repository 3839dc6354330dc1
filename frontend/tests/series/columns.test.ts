import { expect, test } from "vitest";
import { bucketStart, type Columns, firstIndexAtOrAfter, mergeTail } from "../../src/series/columns.ts";

function columns(step: number[], bucketWidth = 1, attempt = 1): Columns {
  const value = step.map((s) => s * 10 + attempt);
  return {
    step,
    value,
    min: value,
    max: value,
    attempt: step.map(() => attempt),
    numNonFinite: 0,
    bucketWidth,
  };
}

test("a tail follows what is known", () => {
  expect(mergeTail(columns([1, 2]), columns([3, 4]), 3)?.step).toEqual([1, 2, 3, 4]);
});

test("a tail replaces everything from its step on, as a resumed attempt repeats steps", () => {
  const merged = mergeTail(columns([1, 2, 3, 4, 5]), columns([3, 4], 1, 2), 3);
  expect(merged?.step).toEqual([1, 2, 3, 4]);
  expect(merged?.attempt).toEqual([1, 1, 2, 2]);
  expect(merged?.value).toEqual([11, 21, 32, 42]);
});

test("an empty tail takes away what is no longer there", () => {
  expect(mergeTail(columns([1, 2, 3]), columns([]), 3)?.step).toEqual([1, 2]);
});

test("a half-filled bucket is replaced whole", () => {
  const from = bucketStart(5, 4);
  expect(from).toBe(4);
  expect(mergeTail(columns([0, 4], 4), columns([4, 8], 4, 2), from)?.value).toEqual([1, 42, 82]);
});

test("another bucket width asks for the whole series", () => {
  expect(mergeTail(columns([1, 2]), columns([2, 4], 2), 2)).toBeNull();
});

test("neither argument is changed", () => {
  const [known, tail] = [columns([1, 2]), columns([2, 3])];
  const before = structuredClone([known, tail]);
  mergeTail(known, tail, 2);
  expect([known, tail]).toEqual(before);
});

test("bisection finds what a search from the front finds", () => {
  const steps = [2, 3, 5, 8, 13, 21];
  for (let step = 0; step < 24; step++) {
    const slow = steps.findIndex((s) => s >= step);
    expect(firstIndexAtOrAfter(steps, step)).toBe(slow < 0 ? steps.length : slow);
  }
});
