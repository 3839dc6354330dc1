import type { RunStatus, Schemas } from "../../api/client.ts";
import { STATUSES } from "../../design/status.tsx";

type Counts = Schemas["SweepSummary"]["num_runs_by_status"];

const ORDER = Object.keys(STATUSES) as RunStatus[];

function inOrder(counts: Counts): [RunStatus, number][] {
  return ORDER.flatMap((status) => (counts[status] ? [[status, counts[status]] as [RunStatus, number]] : []));
}

/** "2 running, 1 queued". */
export function countWords(counts: Counts): string {
  return inOrder(counts)
    .map(([status, count]) => `${count} ${STATUSES[status].word.toLowerCase()}`)
    .join(", ");
}

/** How many runs have each status, a badge each. */
export function StatusCounts({ counts }: { counts: Counts }) {
  return (
    <span className="status-counts">
      {inOrder(counts).map(([status, count]) => {
        const { word, icon: Icon, tone } = STATUSES[status];
        return (
          <span key={status} className={`badge tone-${tone}`}>
            <Icon />
            {`${count} ${word.toLowerCase()}`}
          </span>
        );
      })}
    </span>
  );
}
