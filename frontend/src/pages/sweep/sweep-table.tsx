import { Link } from "react-router";
import type { RunSummary, Schemas } from "../../api/client.ts";
import { StatusBadge } from "../../design/status.tsx";
import { GatesBadge } from "../run/gates/gates-badge.tsx";
import { RunProgress } from "../run/progress.tsx";
import { Measure } from "../runs/run-table.tsx";
import { keyTitle, pointValue } from "./point.ts";

type Sweep = Pick<Schemas["SweepRead"], "keys" | "runs">;

/** What each run differs in, beside what came of it. */
export function SweepTable({ sweep }: { sweep: Sweep }) {
  return (
    <table className="run-table sweep-table">
      <thead>
        <tr>
          <th scope="col">Run</th>
          {sweep.keys.map((key) => (
            <th key={key} scope="col" className="sweep-key" title={key}>
              {keyTitle(key, sweep.keys)}
            </th>
          ))}
          <th scope="col">Status</th>
          <th scope="col">Progress</th>
          <th scope="col" className="number">
            Reward
          </th>
          <th scope="col" className="number">
            Acceptance
          </th>
          <th scope="col" className="number">
            Speedup
          </th>
        </tr>
      </thead>
      <tbody>
        {sweep.runs.map((run) => (
          <SweepRow key={run.id} run={run} keys={sweep.keys} />
        ))}
      </tbody>
    </table>
  );
}

function SweepRow({ run, keys }: { run: RunSummary; keys: string[] }) {
  return (
    <tr>
      <th scope="row" className="run-name">
        <Link to={`/runs/${run.id}`}>{run.name}</Link>
      </th>
      {keys.map((key) => (
        <td key={key} className="sweep-key mono">
          {pointValue(run.sweep_point, key)}
        </td>
      ))}
      <td className="run-status" title={run.status_reason}>
        <div className="run-badges">
          <StatusBadge status={run.status} isStopping={run.is_stop_requested && !run.is_ended} />
          <GatesBadge run={run} />
        </div>
      </td>
      <td className="run-progress">
        <RunProgress run={run} />
      </td>
      <Measure label="Reward" value={run.reward} />
      <Measure label="Acceptance" value={run.acceptance_length} />
      <Measure label="Speedup" value={run.generation_speedup} unit="×" />
    </tr>
  );
}
