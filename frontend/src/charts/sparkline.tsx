import type { Columns } from "../series/columns.ts";

const WIDTH = 120;
const HEIGHT = 28;

/** The course of a series in a few pixels; decoration beside a figure that says the value. */
export function Sparkline({ columns, colour }: { columns: Columns | undefined; colour: string }) {
  const path = sparkPath(columns);
  if (!path) return <span className="sparkline-empty" />;
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={path} fill="none" stroke={colour} strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}

/** SVG path through the finite values; empty below two of them. */
export function sparkPath(columns: Columns | undefined): string {
  if (!columns) return "";
  const points = columns.step.flatMap((step, index) => {
    const value = columns.value[index];
    return value === null || value === undefined ? [] : [[step, value] as const];
  });
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last || points.length < 2) return "";
  const values = points.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const toX = (step: number) => ((step - first[0]) / (last[0] - first[0])) * WIDTH;
  const toY = (value: number) => HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 6);
  return points
    .map(([s, v], i) => `${i === 0 ? "M" : "L"}${toX(s).toFixed(1)} ${toY(v).toFixed(1)}`)
    .join("");
}
