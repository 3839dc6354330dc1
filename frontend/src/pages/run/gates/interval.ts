import type { GateResult } from "./use-gates.ts";

/** Where the parts of an interval mark stand, as shares of its width. */
export interface Geometry {
  estimate: number;
  /** Ends of the interval; an open one reaches the border. */
  low: number;
  high: number;
  isLowOpen: boolean;
  isHighOpen: boolean;
  limit: number;
  /** Which side of the limit breaks the gate. */
  bad: "left" | "right";
  baseline: number | null;
}

type Measured = Pick<GateResult, "estimate" | "low" | "high" | "limit" | "operator" | "baseline">;

const MARGIN = 0.12;

/** Everything that is known in view, with some room at both ends; null where there is nothing to compare. */
export function geometryOf(result: Measured): Geometry | null {
  const { estimate, low, high, limit, operator } = result;
  if (estimate === null || estimate === undefined || limit === null || limit === undefined) return null;
  const baseline = result.baseline?.estimate ?? null;
  const known = [estimate, limit, low, high, baseline].filter(
    (value): value is number => typeof value === "number",
  );
  const [from, to] = [Math.min(...known), Math.max(...known)];
  const width = to - from || Math.abs(from) || 1;
  const at = (value: number) =>
    MARGIN + ((value - from) / width) * (1 - 2 * MARGIN) + (to === from ? 0.5 - MARGIN : 0);
  const isLowOpen = typeof low !== "number";
  const isHighOpen = typeof high !== "number";
  return {
    estimate: at(estimate),
    low: isLowOpen ? 0 : at(low),
    high: isHighOpen ? 1 : at(high),
    isLowOpen,
    isHighOpen,
    limit: at(limit),
    bad: operator?.startsWith(">") ? "left" : "right",
    baseline: baseline === null ? null : at(baseline),
  };
}
