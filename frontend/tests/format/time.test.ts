import { expect, test } from "vitest";
import { formatDuration, formatRelative } from "../../src/format/time.ts";

test.each([
  [0.05, "50 ms"],
  [4.21, "4.2 s"],
  [42, "42 s"],
  [59.7, "1 min 00 s"],
  [200, "3 min 20 s"],
  [7500, "2 h 05 min"],
  [273_600, "3 d 4 h"],
  [null, "–"],
  [Number.NaN, "–"],
])("%s s is written %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test.each([
  [2, "just now"],
  [-2, "just now"],
  [40, "40 s ago"],
  [180, "3 min ago"],
  [86_400 * 2, "2 d ago"],
  [-300, "in 5 min"],
])("%s s ago is written %s", (seconds, text) => {
  const now = new Date("2030-01-01T12:00:00Z");
  expect(formatRelative(new Date(now.getTime() - seconds * 1000), now)).toBe(text);
});
