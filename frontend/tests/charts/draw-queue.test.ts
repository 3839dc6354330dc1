// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { cancelDraw, enqueueDraw } from "../../src/charts/draw-queue.ts";

let drawn: string[];

beforeEach(() => {
  vi.useFakeTimers();
  drawn = [];
});
afterEach(() => vi.useRealTimers());

function chart(name: string, top: number): { element: Element; draw: () => void } {
  const element = document.createElement("div");
  element.getBoundingClientRect = () => ({ top, bottom: top + 100 }) as DOMRect;
  return { element, draw: () => drawn.push(name) };
}

const enqueue = ({ element, draw }: ReturnType<typeof chart>) => enqueueDraw(element, draw);

test("one chart a frame, those on the screen first", () => {
  for (const each of [chart("above", -500), chart("seen", 50), chart("below", 5000)]) enqueue(each);
  vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["seen"]);
  vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["seen", "above"]);
  vi.advanceTimersToNextFrame();
  vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["seen", "above", "below"]);
});

test("news before a chart's turn replace what was to be drawn", () => {
  const { element } = chart("", 0);
  enqueueDraw(element, () => drawn.push("old"));
  enqueueDraw(element, () => drawn.push("new"));
  for (let i = 0; i < 3; i++) vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["new"]);
});

test("a chart that went away is not drawn", () => {
  const gone = chart("gone", 0);
  enqueue(gone);
  cancelDraw(gone.element);
  enqueue(chart("here", 0));
  for (let i = 0; i < 3; i++) vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["here"]);
});

test("a chart that fails to draw does not stop the others", () => {
  const bad = chart("bad", 0);
  enqueueDraw(bad.element, () => {
    throw new Error("no");
  });
  enqueue(chart("good", 0));
  expect(() => vi.advanceTimersToNextFrame()).toThrow("no");
  vi.advanceTimersToNextFrame();
  expect(drawn).toEqual(["good"]);
});
