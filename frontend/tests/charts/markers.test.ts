import { expect, test } from "vitest";
import type { Figure } from "../../src/charts/binding.ts";
import { MAX_MARKERS, withoutCrowding } from "../../src/charts/markers.ts";

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
