import type { Figure, Trace } from "./binding.ts";

/**
 * Exponential moving average with start-up correction: weight 0 leaves values as they are, towards 1 more of the past
 * counts. Gaps stay gaps.
 */
export function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let average = 0;
  let mass = 0;
  return values.map((value) => {
    if (value === null) return null;
    average = weight * average + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return average / mass;
  });
}

/** Smooths the main lines of a bound figure; the measured line stays visible behind, faint. */
export function smoothed(figure: Figure, weight: number): Figure {
  if (weight <= 0) return figure;
  return { ...figure, data: figure.data.flatMap((trace) => smoothTrace(trace, weight)) };
}

function smoothTrace(trace: Trace, weight: number): Trace[] {
  if (!isLine(trace)) return [trace];
  const raw = { ...trace, opacity: 0.25, hoverinfo: "skip", hovertemplate: undefined, showlegend: false };
  return [raw, { ...trace, y: smooth(trace.y ?? [], weight) }];
}

function isLine(trace: Trace): boolean {
  const isScatter = trace.type === "scatter" || trace.type === undefined;
  const isBand = trace.fill !== undefined && trace.fill !== "none";
  return (
    Boolean(trace.meta) && isScatter && !isBand && trace.meta?.is_main !== false && (trace.y?.length ?? 0) > 2
  );
}
