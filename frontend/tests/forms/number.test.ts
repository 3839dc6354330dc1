import { expect, test } from "vitest";
import { groupedText, parseNumber } from "../../src/forms/number.ts";

test.each([
  ["12", 12],
  [" 1.5e-4 ", 1.5e-4],
  ["-3", -3],
  ["−3", -3],
  [".5", 0.5],
  ["2.", 2],
  ["", undefined],
  ["  ", undefined],
])("'%s' means %s", (text, value) => {
  expect(parseNumber(text)).toBe(value);
});

test.each(["abc", "1,5", "1e", "0x10", "1 000", "Infinity"])("'%s' is kept as it was typed", (text) => {
  expect(parseNumber(text)).toBe(text);
});

test.each([
  [16, "16"],
  [2048, "2,048"],
  [-1_000_000, "−1,000,000"],
  [0.000_15, "0.00015"],
  [12_500.5, "12,500.5"],
])("%s is told as %s, not rounded", (value, text) => {
  expect(groupedText(value)).toBe(text);
});
