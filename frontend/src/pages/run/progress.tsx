import type { RunSummary } from "../../api/client.ts";
import { formatCount } from "../../format/number.ts";
import { stageWords } from "./stages.ts";

type Progressing = Pick<
  RunSummary,
  "status" | "step" | "num_steps" | "stage" | "stage_progress_fraction" | "is_ended"
>;

/** How far a run has come: a bar of its steps and what it is doing. */
export function RunProgress({ run }: { run: Progressing }) {
  const isSettingUp = run.step === 0 && run.stage !== null && !run.is_ended;
  const fraction = isSettingUp ? (run.stage_progress_fraction ?? 0) : stepsDone(run) / run.num_steps;
  const words = isSettingUp ? settingUp(run) : `Step ${formatCount(run.step)}/${formatCount(run.num_steps)}`;
  return (
    <div className="progress">
      <div className="progress-bar" data-setup={isSettingUp || undefined}>
        <div style={{ width: `${Math.min(1, fraction) * 100}%` }} data-status={run.status} />
      </div>
      <span className="small">
        {words}
        {!isSettingUp && run.status === "running" && run.stage && (
          <span className="muted"> · {stageWords(run.stage)}</span>
        )}
      </span>
    </div>
  );
}

/** `step` is the one in progress while the run lives. */
function stepsDone(run: Progressing): number {
  return run.is_ended ? run.step : Math.max(0, run.step - 1);
}

function settingUp(run: Progressing): string {
  const words = stageWords(run.stage ?? "start");
  return run.stage_progress_fraction === null
    ? words
    : `${words}, ${Math.floor(run.stage_progress_fraction * 100)} %`;
}
