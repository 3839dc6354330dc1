// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Figure, Trace } from "../../src/charts/binding.ts";
import { ChartTable } from "../../src/charts/chart-table.tsx";

afterEach(cleanup);

const main: Trace = { name: "train", meta: { series: "a" }, x: [1, 1200], y: [0.25, null] };
const low: Trace = {
  legendgroup: "train",
  meta: { series: "a", field: "min" },
  x: [1, 1200],
  y: [0.125, null],
};

function table(data: Trace[]): string[][] {
  const figure: Figure = { data, layout: {} };
  render(<ChartTable figure={figure} xTitle="step" />);
  const cells = (row: HTMLElement) => [...row.children].map((cell) => cell.textContent ?? "");
  return screen.getAllByRole("row").map(cells);
}

test("newest first, one column a trace, a dash for what is missing", () => {
  const other: Trace = { name: "validation", meta: { series: "b" }, x: [1], y: [0.5] };
  expect(table([main, other])).toEqual([
    ["step", "train", "validation"],
    ["1,200", "–", "–"],
    ["1", "0.250", "0.500"],
  ]);
});

test("extremes of buckets have a column of their own, unless they are the values themselves", () => {
  expect(table([main, low])[0]).toEqual(["step", "train", "train, min"]);
  cleanup();
  expect(table([main, { ...low, y: main.y }])[0]).toEqual(["step", "train"]);
});

test("what has no data has no column", () => {
  expect(
    table([
      main,
      { name: "bound", x: [0], y: [1] },
      { name: "empty", meta: { series: "c" }, x: [], y: [] },
    ])[0],
  ).toEqual(["step", "train"]);
});
