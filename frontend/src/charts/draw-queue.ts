/**
 * Draws charts one a frame, those on the screen first, so that a step that moves ten charts does not hold up the page
 * and the chart that is looked at moves at once. A chart that waits is drawn once, with its latest data.
 */
const waiting = new Map<Element, () => void>();
let isScheduled = false;

/** Puts a chart in line; drawing it again before its turn replaces what was to be drawn. */
export function enqueueDraw(element: Element, draw: () => void): void {
  waiting.set(element, draw);
  schedule();
}

/** Takes a chart that goes away out of the line. */
export function cancelDraw(element: Element): void {
  waiting.delete(element);
}

function schedule(): void {
  if (isScheduled || waiting.size === 0) return;
  isScheduled = true;
  requestAnimationFrame(drawNext);
}

function drawNext(): void {
  isScheduled = false;
  const elements = [...waiting.keys()];
  const next = elements.find(isOnScreen) ?? elements[0];
  const draw = next && waiting.get(next);
  if (next) waiting.delete(next);
  schedule();
  draw?.();
}

function isOnScreen(element: Element): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}
