import type { Figure, Trace } from "./binding.ts";

/** A chart is some 600 pixels wide: more markers than this run into each other, and each costs drawing time. */
export const MAX_MARKERS = 100;

/** Takes the markers off lines that have too many points to tell them apart. */
export function withoutCrowding(figure: Figure): Figure {
  return { ...figure, data: figure.data.map(thinned) };
}

function thinned(trace: Trace): Trace {
  const isCrowded = trace.mode === "lines+markers" && (trace.x?.length ?? 0) > MAX_MARKERS;
  return isCrowded ? { ...trace, mode: "lines" } : trace;
}
