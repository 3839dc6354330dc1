/** One metric of a run as columns, ascending by step. A bucket of several steps carries its mean and its extremes. */
export interface Columns {
  step: number[];
  value: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
  attempt: number[];
  numNonFinite: number;
  bucketWidth: number;
}

export const EMPTY_COLUMNS: Columns = {
  step: [],
  value: [],
  min: [],
  max: [],
  attempt: [],
  numNonFinite: 0,
  bucketWidth: 1,
};

/** The last step that is known; -1 when nothing is. */
export function lastStep(columns: Columns): number {
  return columns.step.at(-1) ?? -1;
}

/** First step of the bucket that holds `step`: what must be asked for so that a half-filled bucket is replaced whole. */
export function bucketStart(step: number, width: number): number {
  return Math.floor(step / width) * width;
}

/**
 * Puts a freshly fetched tail behind what is known. Everything at or after `fromStep` is replaced, since a resumed
 * attempt may repeat steps with other values. Returns null when the bucket width has changed: the tail does not fit
 * any more, and the whole series must be fetched.
 */
export function mergeTail(known: Columns, tail: Columns, fromStep: number): Columns | null {
  if (known.step.length > 0 && tail.step.length > 0 && known.bucketWidth !== tail.bucketWidth) return null;
  const kept = firstIndexAtOrAfter(known.step, fromStep);
  const join = <T>(before: T[], after: T[]) => [...before.slice(0, kept), ...after];
  return {
    step: join(known.step, tail.step),
    value: join(known.value, tail.value),
    min: join(known.min, tail.min),
    max: join(known.max, tail.max),
    attempt: join(known.attempt, tail.attempt),
    numNonFinite: Math.max(known.numNonFinite, tail.numNonFinite),
    bucketWidth: tail.step.length > 0 ? tail.bucketWidth : known.bucketWidth,
  };
}

/** Index of the first step >= `step`, by bisection; the length when there is none. */
export function firstIndexAtOrAfter(steps: number[], step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as number) < step) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value at the last step that has one. */
export function latestValue(columns: Columns | undefined): number | null {
  return columns?.value.findLast((value) => value !== null) ?? null;
}

/** The value at the first step that has one. */
export function firstValue(columns: Columns | undefined): number | null {
  return columns?.value.find((value) => value !== null) ?? null;
}
