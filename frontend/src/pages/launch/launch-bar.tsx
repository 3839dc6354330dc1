import type { Schemas } from "../../api/client.ts";
import { plural } from "../../format/number.ts";
import { summarizeMemory } from "./memory-card.tsx";
import { summarize } from "./summary.ts";

interface LaunchBarProps {
  resolved: unknown;
  memory: Schemas["MemoryEstimate"] | null;
  cluster: string;
  numProblems: number;
  isLaunching: boolean;
  onShowProblems: () => void;
}

/** Always in sight: what will run, what is wrong, and Launch. */
export function LaunchBar(props: LaunchBarProps) {
  const { resolved, memory, cluster, numProblems, isLaunching, onShowProblems } = props;
  return (
    <div className="launch-bar">
      <p
        className={numProblems > 0 ? "launch-summary muted" : "launch-summary"}
        title={numProblems > 0 ? "The settings as they were before they had problems." : undefined}
      >
        {resolved === null ? (
          <span className="muted">Checking the settings.</span>
        ) : (
          [...summarize(resolved), ...summarizeMemory(memory), `on ${cluster}`].map((part) => (
            <span key={part}>{part}</span>
          ))
        )}
      </p>
      {numProblems > 0 && (
        <button type="button" className="link-button problem-link" onClick={onShowProblems}>
          {plural(numProblems, "problem")}, show
        </button>
      )}
      <button type="submit" className="button button-primary" disabled={isLaunching}>
        {isLaunching ? "Launching" : "Launch"}
      </button>
    </div>
  );
}
