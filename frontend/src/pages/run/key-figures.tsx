import { useQuery } from "@tanstack/react-query";
import type { RunRead } from "../../api/client.ts";
import { figuresQuery } from "../../api/queries.ts";
import { formatChange, formatNumber, formatPercent } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";
import { type Columns, latestValue } from "../../series/columns.ts";
import { useSeries } from "../../series/use-series.ts";
import { draftLengthWords } from "./draft-length.ts";
import { changeOf, KeyFigure } from "./key-figure.tsx";
import { Losslessness } from "./losslessness.tsx";

const NAMES = [
  "reward/train_mean",
  "validation/accuracy_fraction",
  "rollout/acceptance_length_tokens",
  "speedup/generation_ratio",
  "rollout/draft_length_tokens",
  "speedup/step_ratio",
];

/** The four questions: is it learning, accepting, faster, still exact? */
export function KeyFigures({ run }: { run: RunRead }) {
  const series = useSeries(NAMES);
  const palette = useQuery(figuresQuery).data?.palette ?? {};
  return (
    <div className="key-figures">
      <Reward
        reward={series("reward/train_mean")}
        validation={series("validation/accuracy_fraction")}
        palette={palette}
      />
      <Acceptance
        run={run}
        acceptance={series("rollout/acceptance_length_tokens")}
        meanLength={latestValue(series("rollout/draft_length_tokens"))}
        palette={palette}
      />
      <Speedup
        run={run}
        generation={series("speedup/generation_ratio")}
        step={series("speedup/step_ratio")}
        palette={palette}
      />
      <Losslessness run={run} colour={palette.exactness ?? "var(--accent)"} />
    </div>
  );
}

type Palette = Record<string, string>;

function Reward({
  reward,
  validation,
  palette,
}: {
  reward?: Columns;
  validation?: Columns;
  palette: Palette;
}) {
  const accuracy = latestValue(validation);
  return (
    <KeyFigure
      title="Reward"
      value={formatNumber(latestValue(reward))}
      course={reward}
      colour={palette.reward_train ?? "var(--accent)"}
      hint={
        accuracy === null
          ? ""
          : `Validation accuracy ${formatPercent(accuracy)}${sinceStart(validation, 100)}`
      }
    />
  );
}

function Acceptance(props: {
  run: RunRead;
  acceptance?: Columns;
  meanLength: number | null;
  palette: Palette;
}) {
  const { run, acceptance, meanLength, palette } = props;
  const { suffix, hint } = draftLengthWords(run.config, meanLength);
  return (
    <KeyFigure
      title="Acceptance length"
      value={formatNumber(latestValue(acceptance))}
      suffix={suffix}
      course={acceptance}
      colour={palette.acceptance ?? "var(--accent)"}
      hint={hint}
    />
  );
}

function Speedup(props: { run: RunRead; generation?: Columns; step?: Columns; palette: Palette }) {
  const { run, generation, step, palette } = props;
  const speedup = latestValue(generation);
  const ofStep = latestValue(step);
  const interval = getAt(run.config, ["probe", "interval_steps"]);
  const measured = interval === 0 ? "The probe is switched off" : `Measured every ${interval} steps`;
  const waiting =
    getAt(run.config, ["drafter", "draft_length"]) === undefined
      ? "Nothing to measure without a drafter"
      : measured;
  return (
    <KeyFigure
      title="Generation speedup"
      value={speedup === null ? "–" : `${formatNumber(speedup)}×`}
      course={generation}
      colour={palette.speedup_generation ?? "var(--accent)"}
      hint={ofStep === null ? waiting : `Whole step ${formatNumber(ofStep)}×`}
    />
  );
}

function sinceStart(columns: Columns | undefined, factor: number): string {
  const change = changeOf(columns);
  return change === null ? "" : ` (${formatChange(change * factor)} points)`;
}
