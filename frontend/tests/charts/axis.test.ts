import { expect, test } from "vitest";
import { onAxis } from "../../src/charts/axis.ts";
import type { Figure } from "../../src/charts/binding.ts";
import { EMPTY_COLUMNS } from "../../src/series/columns.ts";

const figure = (x: number[], y: (number | null)[]): Figure => ({
  data: [
    { meta: { series: "a" }, x, y },
    { name: "fixed", x: [0], y: [1] },
  ],
  layout: { uirevision: "keep" },
});
const scale = { ...EMPTY_COLUMNS, step: [1, 2, 5], value: [100, 200, 800] };

test("steps become what the scale had reached, linearly in between", () => {
  const moved = onAxis(figure([1, 2, 3, 5], [10, 20, null, 50]), scale);
  expect(moved.data[0]).toMatchObject({ x: [100, 200, 400, 800], y: [10, 20, null, 50], visible: true });
});

test("points after the last known step are left out", () => {
  const moved = onAxis(figure([1, 6], [2, 3]), scale);
  expect(moved.data[0]).toMatchObject({ x: [100], y: [2] });
});

test("the state before the first step stands at zero", () => {
  expect(onAxis(figure([0, 1], [1, 2]), scale).data[0]).toMatchObject({ x: [0, 100], y: [1, 2] });
  const empty = { ...EMPTY_COLUMNS };
  expect(onAxis(figure([0], [1]), empty).data[0]).toMatchObject({ x: [] });
});

test("without a scale nothing is shown rather than something wrong", () => {
  expect(onAxis(figure([1], [1]), undefined).data[0]).toMatchObject({ x: [], y: [], visible: false });
});

test("traces without data and the layout stay as they are", () => {
  const before = figure([1], [1]);
  const moved = onAxis(before, scale);
  expect(moved.data[1]).toBe(before.data[1]);
  expect(moved.layout).toBe(before.layout);
});

test("x never goes back when the scale does not", () => {
  const x = onAxis(figure([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]), scale).data[0]?.x ?? [];
  expect([...x].sort((a, b) => a - b)).toEqual(x);
});
