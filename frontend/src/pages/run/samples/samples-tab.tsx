import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { RunRead } from "../../../api/client.ts";
import { samplesQuery } from "../../../api/queries.ts";
import { Empty, ProblemNote, Waiting } from "../../../design/states.tsx";
import { formatNumber, plural } from "../../../format/number.ts";
import { getAt } from "../../../forms/values.ts";
import { useStream } from "../../../stream/use-stream.ts";
import { acceptanceLength, type Sample } from "./tokens.ts";
import { ResponseText, Rounds, TokenLegend } from "./tokens-view.tsx";

/** Stored rollouts of a step; the newest step is followed until another one is chosen. */
export function SamplesTab({ run }: { run: RunRead }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const queryClient = useQueryClient();
  const samples = useQuery(samplesQuery(run.id, chosen));
  useStream(run.id, (event) => {
    if (event.kind === "samples" || event.kind === "resync") {
      void queryClient.invalidateQueries({ queryKey: ["samples", run.id] });
    }
  });
  if (samples.error) return <ProblemNote error={samples.error} onRetry={() => samples.refetch()} />;
  if (!samples.data) return <Waiting>Fetching stored rollouts.</Waiting>;
  const { steps, step, items } = samples.data;
  if (step === null) return <NoSamples run={run} />;
  return (
    <>
      <div className="view-bar">
        <StepChoice steps={steps} step={step} isFollowing={chosen === null} onChoose={setChosen} />
        <TokenLegend />
        <a className="button" href={`/api/v1/runs/${run.id}/samples.parquet`} download>
          Download all (Parquet)
        </a>
      </div>
      <ul className="samples">
        {items.map((sample) => (
          <SampleCard key={sample.id} sample={sample} />
        ))}
      </ul>
    </>
  );
}

function NoSamples({ run }: { run: RunRead }) {
  const interval = getAt(run.config, ["samples", "interval_steps"]);
  return (
    <Empty title="No rollouts stored yet.">
      <p>
        {interval === 0
          ? "This run stores none: samples.interval_steps is 0."
          : `Some are stored every ${interval} steps.`}
      </p>
    </Empty>
  );
}

interface StepChoiceProps {
  steps: number[];
  step: number;
  isFollowing: boolean;
  onChoose: (step: number | null) => void;
}

function StepChoice({ steps, step, isFollowing, onChoose }: StepChoiceProps) {
  return (
    <label className="step-choice">
      Step
      <select
        className="input"
        value={isFollowing ? "" : step}
        onChange={(event) => onChoose(event.target.value === "" ? null : Number(event.target.value))}
      >
        <option value="">newest ({steps.at(-1)})</option>
        {steps.toReversed().map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function SampleCard({ sample }: { sample: Sample }) {
  const [hasRounds, setRounds] = useState(false);
  const length = acceptanceLength(sample);
  return (
    <li className="card sample">
      <div className="card-head">
        <p className="small">
          <span className={sample.reward > 0 ? "good" : "poor"}>Reward {formatNumber(sample.reward)}</span>
          <span className="muted">
            {" "}
            · advantage {formatNumber(sample.advantage)}
            {length !== null && ` · acceptance length ${formatNumber(length)}`}
            {` · ${plural(sample.rounds.length, "round")}`}
            {sample.is_truncated && " · cut at the longest length"}
          </span>
        </p>
        <button
          type="button"
          className="button"
          aria-pressed={hasRounds}
          onClick={() => setRounds(!hasRounds)}
        >
          {hasRounds ? "Show as text" : "Show rounds"}
        </button>
      </div>
      <p className="prompt mono">{sample.prompt}</p>
      {sample.answer != null && (
        <p className="small muted">
          Answer: <span className="mono">{sample.answer}</span>
        </p>
      )}
      {hasRounds ? <Rounds sample={sample} /> : <ResponseText sample={sample} />}
    </li>
  );
}
