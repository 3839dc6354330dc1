import { useQuery } from "@tanstack/react-query";
import { figuresQuery } from "../../api/queries.ts";
import { formatDuration } from "../../format/time.ts";
import { type Columns, lastStep } from "../../series/columns.ts";
import { useSeries } from "../../series/use-series.ts";

const STAGES = [
  "data",
  "prepare",
  "generation",
  "reward",
  "logprob",
  "train",
  "draft",
  "probe",
  "validation",
  "checkpoint",
  "other",
];
const STEP_TIME = "time/step_s";
const NAMES = [STEP_TIME, ...STAGES.map((stage) => `time/${stage}_s`)];

/** The stage times of the last step as one bar, from left to right as they ran. */
export function StageStrip() {
  const series = useSeries(NAMES);
  const palette = useQuery(figuresQuery).data?.palette ?? {};
  const step = lastStep(series(STEP_TIME) ?? EMPTY);
  const parts = STAGES.flatMap((stage) => {
    const seconds = valueAt(series(`time/${stage}_s`), step);
    return seconds ? [{ stage, seconds, colour: palette[stage] ?? "var(--line-strong)" }] : [];
  });
  const total = parts.reduce((sum, { seconds }) => sum + seconds, 0);
  if (step < 0 || total === 0) {
    return (
      <p className="stage-strip muted small">
        The stage times of the last step appear here after the first step.
      </p>
    );
  }
  return (
    <section className="stage-strip" aria-label={`Stage times of step ${step}`}>
      <h2>
        Step {step} <span className="muted">took {formatDuration(total)}</span>
      </h2>
      <div className="strip">
        {parts.map(({ stage, seconds, colour }) => (
          <div
            key={stage}
            style={{ flexGrow: seconds / total, background: colour }}
            title={`${stage} ${formatDuration(seconds)}`}
          />
        ))}
      </div>
      <ul className="strip-legend small">
        {parts.map(({ stage, seconds, colour }) => (
          <li key={stage}>
            <span className="swatch" style={{ background: colour }} />
            {stage} <span className="muted">{formatDuration(seconds)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const EMPTY = { step: [] } as unknown as Columns;

function valueAt(columns: Columns | undefined, step: number): number | null {
  const index = columns?.step.lastIndexOf(step) ?? -1;
  return index < 0 ? null : (columns?.value[index] ?? null);
}
