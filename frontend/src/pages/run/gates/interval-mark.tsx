import { geometryOf } from "./interval.ts";
import type { GateResult } from "./use-gates.ts";

const WIDTH = 160;
const HEIGHT = 20;
const MIDDLE = HEIGHT / 2;

/** The estimate as a dot in its interval, the limit as a line, and the side that breaks it shaded. */
export function IntervalMark({ result }: { result: GateResult }) {
  const geometry = geometryOf(result);
  if (!geometry) return null;
  const { estimate, low, high, isLowOpen, isHighOpen, limit, bad, baseline } = geometry;
  const x = (share: number) => share * WIDTH;
  return (
    <svg
      className={`interval-mark tone-${toneOf(result)}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={result.reason}
    >
      <title>{result.reason}</title>
      <rect
        className="interval-bad"
        x={bad === "left" ? 0 : x(limit)}
        y={0}
        width={bad === "left" ? x(limit) : WIDTH - x(limit)}
        height={HEIGHT}
      />
      <line className="interval-limit" x1={x(limit)} x2={x(limit)} y1={0} y2={HEIGHT} />
      {baseline !== null && (
        <line className="interval-baseline" x1={x(baseline)} x2={x(baseline)} y1={0} y2={HEIGHT} />
      )}
      <line className="interval-line" x1={x(low)} x2={x(high)} y1={MIDDLE} y2={MIDDLE} />
      {!isLowOpen && <line className="interval-line" x1={x(low)} x2={x(low)} y1={6} y2={HEIGHT - 6} />}
      {!isHighOpen && <line className="interval-line" x1={x(high)} x2={x(high)} y1={6} y2={HEIGHT - 6} />}
      <circle className="interval-estimate" cx={x(estimate)} cy={MIDDLE} r={3.5} />
    </svg>
  );
}

/** Colour of what a gate came to: amber where nothing is proved. */
export function toneOf({ verdict, is_passed }: GateResult): "succeeded" | "failed" | "lost" {
  if (!is_passed) return "failed";
  return verdict === "passed" ? "succeeded" : "lost";
}
