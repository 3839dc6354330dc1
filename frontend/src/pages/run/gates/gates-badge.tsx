import type { RunSummary } from "../../../api/client.ts";
import { FailedIcon, QueuedIcon, SucceededIcon } from "../../../design/icons.tsx";

const WORDS = {
  passed: { word: "Gates passed", icon: SucceededIcon, tone: "succeeded" },
  failed: { word: "Gates failed", icon: FailedIcon, tone: "failed" },
  pending: { word: "Gates pending", icon: QueuedIcon, tone: "stopped" },
};

/** What came of a run's gates, in short; nothing for a run without. While the run goes on, that they are pending goes
 * without saying. */
export function GatesBadge({ run }: { run: Pick<RunSummary, "gates_verdict" | "is_ended"> }) {
  if (!run.gates_verdict || (run.gates_verdict === "pending" && !run.is_ended)) return null;
  const { word, icon: Icon, tone } = WORDS[run.gates_verdict];
  return (
    <span className={`badge tone-${tone}`}>
      <Icon />
      {word}
    </span>
  );
}
