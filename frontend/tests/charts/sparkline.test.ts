import { expect, test } from "vitest";
import { sparkPath } from "../../src/charts/sparkline.tsx";
import { EMPTY_COLUMNS } from "../../src/series/columns.ts";

const columns = (value: (number | null)[]) => ({ ...EMPTY_COLUMNS, step: value.map((_, i) => i + 1), value });

test("runs from the left to the right edge, low values low", () => {
  expect(sparkPath(columns([0, 1]))).toBe("M0.0 25.0L120.0 3.0");
});

test("leaves out what is not finite, and needs two points", () => {
  expect(sparkPath(columns([0, null, 1]))).toBe("M0.0 25.0L120.0 3.0");
  expect(sparkPath(columns([1]))).toBe("");
  expect(sparkPath(undefined)).toBe("");
});

test("a constant is a flat line, not a division by zero", () => {
  expect(sparkPath(columns([5, 5]))).not.toContain("NaN");
});
