import { Link } from "react-router";
import type { Schemas } from "../../api/client.ts";
import { useMayChange } from "../../api/rights.ts";
import { RelativeTime } from "../../design/time.tsx";
import { formatNumber } from "../../format/number.ts";
import { Labels } from "../runs/run-table.tsx";
import { StatusCounts } from "../sweep/counts.tsx";
import { keyTitle, pointValue } from "../sweep/point.ts";
import { StopSweep } from "../sweep/stop-sweep.tsx";
import { type BestBy, FIGURES } from "./figures.ts";

type Sweep = Schemas["SweepSummary"];

/** The sweeps as a table; on a phone each row becomes a card. */
export function SweepList({ sweeps, bestBy }: { sweeps: Sweep[]; bestBy: BestBy }) {
  return (
    <table className="run-table sweep-list">
      <thead>
        <tr>
          <th scope="col">Sweep</th>
          <th scope="col">Runs</th>
          <th scope="col">Best {FIGURES[bestBy].words}</th>
          <th scope="col">Created</th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sweeps.map((sweep) => (
          <SweepRow key={sweep.id} sweep={sweep} bestLabel={`Best ${FIGURES[bestBy].words}`} />
        ))}
      </tbody>
    </table>
  );
}

function SweepRow({ sweep, bestLabel }: { sweep: Sweep; bestLabel: string }) {
  const isStoppable = useMayChange(sweep.project) && !sweep.is_ended;
  return (
    <tr>
      <th scope="row" className="run-name">
        <Link to={`/sweeps/${sweep.id}`}>{sweep.name}</Link>
        <span className="muted small sweep-keys">
          {sweep.keys.map((key) => keyTitle(key, sweep.keys)).join(", ")}
        </span>
        <Labels labels={sweep.labels} />
      </th>
      <td className="sweep-runs">
        <StatusCounts counts={sweep.num_runs_by_status} />
      </td>
      <td className="sweep-best" data-label={bestLabel}>
        <Best sweep={sweep} />
      </td>
      <td className="sweep-created">
        <RelativeTime time={sweep.created_at} />
        {sweep.created_by && <span className="muted small"> by {sweep.created_by}</span>}
      </td>
      <td className="sweep-actions">{isStoppable && <StopSweep sweep={sweep} isStopping={false} />}</td>
    </tr>
  );
}

/** The figure of the best run, and in what that run differs. */
function Best({ sweep: { best, keys } }: { sweep: Sweep }) {
  if (!best) return <span className="muted">not measured yet</span>;
  const { words, unit } = FIGURES[best.metric];
  const point = keys
    .filter((key) => key in best.point)
    .map((key) => `${keyTitle(key, keys)} = ${pointValue(best.point, key)}`);
  return (
    <>
      <strong title={`Highest latest ${words}`}>{`${formatNumber(best.value)}${unit}`}</strong>{" "}
      <Link to={`/runs/${best.run_id}`} title={best.name}>
        {point.join(", ") || best.name}
      </Link>
    </>
  );
}
