import { expect, test } from "vitest";
import type { Figure } from "../../src/charts/binding.ts";
import { MAX_MARKERS, MAX_NAMED_LINES, withoutCrowding } from "../../src/charts/markers.ts";

const modeWith = (mode: string, numPoints: number) => {
  const figure: Figure = { data: [{ mode, x: Array.from({ length: numPoints }, (_, i) => i) }], layout: {} };
  return withoutCrowding(figure).data[0]?.mode;
};

test("markers stay while they can be told apart", () => {
  expect(modeWith("lines+markers", MAX_MARKERS)).toBe("lines+markers");
  expect(modeWith("lines+markers", MAX_MARKERS + 1)).toBe("lines");
});

test("points without a line are never taken away", () => {
  expect(modeWith("markers", 10 * MAX_MARKERS)).toBe("markers");
});

const withLines = (numShown: number, numPoints = 2) => {
  const line = (visible: boolean) => ({ mode: "lines+markers", visible, x: Array(numPoints).fill(0) });
  const data = [...Array(numShown).fill(line(true)), ...Array(20).fill(line(false))];
  return withoutCrowding({ data, layout: { hovermode: "x unified", legend: { orientation: "h" } } });
};

test("very many lines leave room for the plot, and the pointer names one", () => {
  const crowded = withLines(MAX_NAMED_LINES + 1);
  expect(crowded.layout).toMatchObject({ hovermode: "closest", legend: { orientation: "h", maxheight: 58 } });
  expect(crowded.data[0]?.mode).toBe("lines");
  expect(withLines(MAX_NAMED_LINES + 1, 1).data[0]?.mode).toBe("lines+markers");
});

test("lines that are not there take no room", () => {
  const { layout, data } = withLines(MAX_NAMED_LINES);
  expect(layout).toEqual({ hovermode: "x unified", legend: { orientation: "h" } });
  expect(data[0]?.mode).toBe("lines+markers");
});
