import { expect, test } from "vitest";
import { formatChange, formatNumber, formatPercent, plural } from "../../src/format/number.ts";

test.each([
  [0, "0"],
  [0.4123, "0.412"],
  [3.5, "3.50"],
  [12.345, "12.3"],
  [987.6, "988"],
  [15123.4, "15,123"],
  [-2.5, "−2.50"],
  [0.000123, "1.23e−4"],
  [null, "–"],
  [Number.NaN, "NaN"],
  [Number.POSITIVE_INFINITY, "∞"],
])("%s is written %s", (value, text) => {
  expect(formatNumber(value)).toBe(text);
});

test("changes carry their sign, and next to nothing is none", () => {
  expect([0.213, -0.02, 0.0001, null].map(formatChange)).toEqual(["+0.21", "−0.020", "±0", "–"]);
});

test("fractions are shown as percent, counts agree with their noun", () => {
  expect(formatPercent(0.551)).toBe("55.1 %");
  expect([plural(1, "run"), plural(2000, "run")]).toEqual(["1 run", "2,000 runs"]);
});
