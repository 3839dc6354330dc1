import { expect, test } from "vitest";
import type { Figure } from "../../src/charts/binding.ts";
import { smooth, smoothed } from "../../src/charts/smoothing.ts";

test("by hand: weight 0.5 over 4, 8 gives 4, then (0.25 * 4 + 0.5 * 8) / 0.75", () => {
  expect(smooth([4, 8], 0.5)).toEqual([4, expect.closeTo(20 / 3, 12)]);
});

test("a constant stays that constant from the first point on", () => {
  for (const value of smooth([3, 3, 3, 3], 0.9)) expect(value).toBeCloseTo(3, 12);
});

test("a gap stays a gap and does not pull the average", () => {
  expect(smooth([2, null, 2], 0.8)).toEqual([2, null, expect.closeTo(2, 12)]);
});

test("matches the definition: weights that fall off with age, divided by their sum", () => {
  const values = [1, 5, 2, 8, 3];
  const slow = values.map((_, end) => {
    const weights = values.slice(0, end + 1).map((_, i) => 0.7 ** (end - i));
    const sum = weights.reduce((a, b) => a + b);
    return weights.reduce((total, weight, i) => total + weight * (values[i] as number), 0) / sum;
  });
  expect(smooth(values, 0.7)).toEqual(slow.map((value) => expect.closeTo(value, 12)));
});

test("bands, reference lines and bars are not smoothed; a line keeps its measured course behind", () => {
  const y = [1, 9, 1];
  const x = [1, 2, 3];
  const figure: Figure = {
    data: [
      { type: "scatter", name: "line", meta: { series: "a" }, x, y },
      { type: "scatter", name: "band", meta: { series: "a" }, fill: "tonexty", x, y },
      { type: "scatter", name: "bound", meta: { series: "a", is_main: false }, x, y },
      { type: "bar", name: "bar", meta: { series: "a" }, x, y },
    ],
    layout: {},
  };
  const traces = smoothed(figure, 0.5).data;
  expect(traces.map(({ name }) => name)).toEqual(["line", "line", "band", "bound", "bar"]);
  expect(traces[0]).toMatchObject({ y, opacity: 0.25, showlegend: false });
  expect(traces[1]?.y).not.toEqual(y);
  for (const trace of traces.slice(2)) expect(trace.y).toEqual(y);
});
