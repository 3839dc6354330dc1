import type { Columns } from "../series/columns.ts";
import type { Figure, Trace } from "./binding.ts";

export type AxisKind = "step" | "tokens" | "time";

export const AXES: Record<AxisKind, { label: string; title: string; series: string | null }> = {
  step: { label: "Step", title: "step", series: null },
  tokens: { label: "Tokens", title: "response tokens", series: "progress/num_tokens_total" },
  time: { label: "Time", title: "training time (s)", series: "progress/elapsed_s" },
};

/**
 * Puts a bound figure on another x axis: each step is replaced by what `scale` says had been reached at that step,
 * linearly between known steps. Points outside the known steps are left out.
 */
export function onAxis(figure: Figure, scale: Columns | undefined): Figure {
  if (!scale)
    return { ...figure, data: figure.data.map((trace) => (trace.meta ? withoutPoints(trace) : trace)) };
  const whole = withOrigin(scale);
  return { ...figure, data: figure.data.map((trace) => (trace.meta ? moveTrace(trace, whole) : trace)) };
}

/** Before the first step nothing has been generated and no time has passed: where the first validation stands. */
function withOrigin(scale: Columns): Columns {
  if (scale.step.length === 0 || scale.step[0] === 0) return scale;
  return { ...scale, step: [0, ...scale.step], value: [0, ...scale.value] };
}

function withoutPoints(trace: Trace): Trace {
  return { ...trace, x: [], y: [], visible: false };
}

function moveTrace(trace: Trace, scale: Columns): Trace {
  const x: number[] = [];
  const y: (number | null)[] = [];
  let start = 0;
  (trace.x ?? []).forEach((step, index) => {
    while (start + 1 < scale.step.length && (scale.step[start + 1] as number) <= step) start += 1;
    const moved = interpolate(scale, start, step);
    if (moved === null) return;
    x.push(moved);
    y.push(trace.y?.[index] ?? null);
  });
  return { ...trace, x, y, visible: x.length > 0 };
}

function interpolate(scale: Columns, index: number, step: number): number | null {
  const [left, right] = [scale.step[index], scale.step[index + 1]];
  const [from, to] = [scale.value[index], scale.value[index + 1]];
  if (left === undefined || step < left || from === null || from === undefined) return null;
  if (step === left) return from;
  if (right === undefined || to === null || to === undefined) return null;
  return from + ((to - from) * (step - left)) / (right - left);
}
