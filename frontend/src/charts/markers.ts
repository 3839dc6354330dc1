import type { Figure, Trace } from "./binding.ts";

/** A chart is some 600 pixels wide: more markers than this run into each other, and each costs drawing time. */
export const MAX_MARKERS = 100;

/** More lines than this, as of a cluster's GPUs, leave no room for the plot when all are named over it and at each step. */
export const MAX_NAMED_LINES = 12;

/** Pixels of a legend that is scrolled: three rows. */
const SCROLLED_LEGEND_HEIGHT = 58;

/**
 * Takes the markers off lines that have too many points to tell them apart. Of very many lines the legend is scrolled
 * and the pointer names the one beneath it.
 */
export function withoutCrowding(figure: Figure): Figure {
  const data = figure.data.map(thinned);
  const numNamed = data.filter((trace) => trace.visible !== false && trace.showlegend !== false).length;
  if (numNamed <= MAX_NAMED_LINES) return { ...figure, data };
  const legend = { ...(figure.layout.legend as object), maxheight: SCROLLED_LEGEND_HEIGHT };
  return {
    data: data.map(withoutMarkers),
    layout: { ...figure.layout, hovermode: "closest", legend },
  };
}

/** A line of one point is nothing but its marker. */
function withoutMarkers(trace: Trace): Trace {
  const isLine = trace.mode === "lines+markers" && (trace.x?.length ?? 0) > 1;
  return isLine ? { ...trace, mode: "lines" } : trace;
}

function thinned(trace: Trace): Trace {
  const isCrowded = trace.mode === "lines+markers" && (trace.x?.length ?? 0) > MAX_MARKERS;
  return isCrowded ? { ...trace, mode: "lines" } : trace;
}
