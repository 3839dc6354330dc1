import type { RunSummary } from "../../api/client.ts";
import { formatCount } from "../../format/number.ts";
import { stageWords } from "./stages.ts";

type Progressing = Pick<
  RunSummary,
  "job" | "status" | "step" | "num_steps" | "stage" | "stage_progress_fraction" | "is_ended"
>;

/** How far a run has come: a bar of its steps and what it is doing. */
export function RunProgress({ run }: { run: Progressing }) {
  const isSettingUp = run.step === 0 && run.stage !== null && !run.is_ended;
  const fraction = isSettingUp ? (run.stage_progress_fraction ?? 0) : fractionDone(run);
  const words = isSettingUp ? settingUp(run) : doneWords(run);
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

/** `step` is the one in progress while the run lives; draft training has no steps. */
function fractionDone(run: Progressing): number {
  if (run.num_steps === 0) return run.status === "succeeded" ? 1 : 0;
  return (run.is_ended ? run.step : Math.max(0, run.step - 1)) / run.num_steps;
}

function doneWords(run: Progressing): string {
  if (run.job === "draft_training") return run.status === "succeeded" ? "Draft trained" : "Draft training";
  return `Step ${formatCount(run.step)}/${formatCount(run.num_steps)}`;
}

function settingUp(run: Progressing): string {
  const words = stageWords(run.stage ?? "start");
  return run.stage_progress_fraction === null
    ? words
    : `${words}, ${Math.floor(run.stage_progress_fraction * 100)} %`;
}
