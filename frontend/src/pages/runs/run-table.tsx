import { Link } from "react-router";
import type { RunSummary } from "../../api/client.ts";
import { AlarmIcon } from "../../design/icons.tsx";
import { StatusBadge } from "../../design/status.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { formatNumber, plural } from "../../format/number.ts";
import { GatesBadge } from "../run/gates/gates-badge.tsx";
import { RunProgress } from "../run/progress.tsx";

/** The runs as a table; on a phone each row becomes a card. */
export function RunTable({ runs }: { runs: RunSummary[] }) {
  return (
    <table className="run-table">
      <thead>
        <tr>
          <th scope="col">Run</th>
          <th scope="col">Status</th>
          <th scope="col">Progress</th>
          <th scope="col" className="number" title="Mean reward of the latest step's responses">
            Reward
          </th>
          <th scope="col" className="number" title="Tokens emitted per verification round">
            Acceptance
          </th>
          <th scope="col" className="number" title="Measured speedup of generation over plain decoding">
            Speedup
          </th>
          <th scope="col">Started</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow key={run.id} run={run} />
        ))}
      </tbody>
    </table>
  );
}

function RunRow({ run }: { run: RunSummary }) {
  return (
    <tr>
      <th scope="row" className="run-name">
        <Link to={`/runs/${run.id}`}>{run.name}</Link>
        <Labels labels={run.labels} />
      </th>
      <td className="run-status" title={run.status_reason}>
        <div className="run-badges">
          <StatusBadge status={run.status} isStopping={run.is_stop_requested && !run.is_ended} />
          <AlarmBadge count={run.num_active_alarms} />
          <GatesBadge run={run} />
          <QueuePlace run={run} />
        </div>
      </td>
      <td className="run-progress">
        <RunProgress run={run} />
      </td>
      <Measure label="Reward" value={run.reward} />
      <Measure label="Acceptance" value={run.acceptance_length} />
      <Measure label="Speedup" value={run.generation_speedup} unit="×" />
      <td className="run-started">
        {run.started_at ? <RelativeTime time={run.started_at} /> : <span className="muted">not started</span>}
      </td>
    </tr>
  );
}

/** A figure of the run; on a phone one that was not measured takes no room. */
export function Measure({ label, value, unit = "" }: { label: string; value: number | null; unit?: string }) {
  return (
    <td className="number" data-label={label} data-missing={value === null || undefined}>
      {value === null ? "–" : `${formatNumber(value)}${unit}`}
    </td>
  );
}

/** Where a waiting run stands in its cluster's queue. */
export function QueuePlace({ run }: { run: Pick<RunSummary, "status" | "queue_position" | "priority"> }) {
  if (run.status !== "queued" || run.queue_position === null) return null;
  const priority = run.priority === 0 ? "" : `, priority ${run.priority}`;
  return (
    <span className="muted small" title="Its place in the queue of its cluster">
      {`${run.queue_position === 1 ? "Next" : `Place ${run.queue_position}`} in the queue${priority}`}
    </span>
  );
}

function AlarmBadge({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <span className="badge tone-failed" title="Something is wrong: the run's page says what to do">
      <AlarmIcon />
      {plural(count, "alarm")}
    </span>
  );
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  const entries = Object.entries(labels);
  if (entries.length === 0) return null;
  return (
    <span className="labels">
      {entries.map(([key, value]) => (
        <span key={key} className="label">
          {value ? `${key}: ${value}` : key}
        </span>
      ))}
    </span>
  );
}
