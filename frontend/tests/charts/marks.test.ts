import { expect, test } from "vitest";
import type { Figure } from "../../src/charts/binding.ts";
import { withMarks } from "../../src/charts/marks.ts";
import { EMPTY_COLUMNS } from "../../src/series/columns.ts";

const figure: Figure = { data: [], layout: { shapes: [{ y0: 1 }], title: "T" } };
const scale = { ...EMPTY_COLUMNS, step: [1, 2, 3, 4], value: [10, 20, 40, 80] };
const placesOf = (marked: Figure) => {
  const lines = (marked.layout.shapes as { name?: string; x0: number }[]).filter(({ name }) => name);
  const notes = marked.layout.annotations as { x: number; text: string }[];
  expect(lines.map(({ x0 }) => x0)).toEqual(notes.map(({ x }) => x));
  return notes.map(({ x, text }) => [x, text]);
};

test("each mark is a line at its step, behind what the figure draws itself", () => {
  const marked = withMarks(figure, [
    { step: 7, title: "b" },
    { step: 2, title: "a" },
  ]);
  expect(placesOf(marked)).toEqual([
    [2, "a"],
    [7, "b"],
  ]);
  expect((marked.layout.shapes as object[])[0]).toEqual({ y0: 1 });
  expect(figure.layout.shapes).toHaveLength(1);
});

test("on another axis a mark stands where its step does; one outside what is known is left out", () => {
  const marks = [
    { step: 9, title: "not reached" },
    { step: 3, title: "c" },
    { step: 1, title: "a" },
  ];
  expect(placesOf(withMarks(figure, marks, scale))).toEqual([
    [10, "a"],
    [40, "c"],
  ]);
});

test("while the axis is unknown nothing is marked", () => {
  expect(placesOf(withMarks(figure, [{ step: 1, title: "a" }], null))).toEqual([]);
});

test("without marks the figure is the same object, so that nothing is drawn anew", () => {
  expect(withMarks(figure, [])).toBe(figure);
});
