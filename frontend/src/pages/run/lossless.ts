import { type Columns, lastStep, latestValue } from "../../series/columns.ts";
import type { Alarm } from "./alarms/use-alarms.ts";

export interface Verdict {
  state: "lossless" | "drift" | "unmeasured";
  /** Step of the strongest drift, or of the latest measurement. */
  step: number;
  /** Kolmogorov-Smirnov distance at that step. */
  distance: number;
}

/** Engines in low precision differ from the trainer by about 0.001; a distance below this is numerics, not drift. */
export const MIN_DRIFT_DISTANCE = 0.01;
/** Chance of a false alarm over a whole run of exact sampling. */
export const FALSE_ALARM_RATE = 0.01;

/**
 * The audit's own verdict: drift from the first step at which it raised the alarm, even where it has cleared it since,
 * for the policy was trained on those samples. Null for a run without a sequential test and without an alarm.
 */
export function judgeByAlarms(
  alarms: Pick<Alarm, "name" | "ending" | "step">[],
  distance: Columns | undefined,
  evidence: Columns | undefined,
): Verdict | null {
  const drifts = alarms.filter(({ name, ending }) => name === "distribution_drift" && ending !== "undone");
  const latest = latestValue(distance) ?? 0;
  if (drifts.length > 0) {
    return { state: "drift", step: Math.min(...drifts.map(({ step }) => step)), distance: latest };
  }
  if (latestValue(evidence) === null) return null;
  return { state: "lossless", step: distance ? lastStep(distance) : 0, distance: latest };
}

/**
 * Of runs from before the sequential test: whether the samples followed the policy so far. A step counts as drift when its distance has both an effect size and
 * a p-value below the false-alarm rate divided by the number of steps tested (Bonferroni).
 */
export function judge(distance: Columns | undefined, pValue: Columns | undefined): Verdict {
  const pAt = new Map(pValue?.step.map((step, index) => [step, pValue.value[index] ?? null]));
  const tested = (distance?.step ?? []).flatMap((step, index) => {
    const [d, p] = [distance?.value[index], pAt.get(step)];
    return d === null || d === undefined || p === null || p === undefined ? [] : [{ step, d, p }];
  });
  const last = tested.at(-1);
  if (!last) return { state: "unmeasured", step: 0, distance: 0 };
  const threshold = FALSE_ALARM_RATE / tested.length;
  const drifted = tested.filter(({ d, p }) => d >= MIN_DRIFT_DISTANCE && p < threshold);
  const worst = drifted.reduce((a, b) => (b.d > a.d ? b : a), drifted[0] ?? last);
  return { state: drifted.length > 0 ? "drift" : "lossless", step: worst.step, distance: worst.d };
}
