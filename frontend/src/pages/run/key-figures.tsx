import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { RunRead } from "../../api/client.ts";
import { figuresQuery } from "../../api/queries.ts";
import { Sparkline } from "../../charts/sparkline.tsx";
import { formatChange, formatCount, formatNumber, formatPercent } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";
import { type Columns, firstValue, latestValue } from "../../series/columns.ts";
import { useSeries } from "../../series/use-series.ts";
import { FALSE_ALARM_RATE, judge, MIN_DRIFT_DISTANCE } from "./lossless.ts";

const NAMES = [
  "reward/train_mean",
  "validation/accuracy_fraction",
  "rollout/acceptance_length_tokens",
  "speedup/generation_ratio",
  "speedup/step_ratio",
  "lossless/ks_distance",
  "lossless/ks_p_value",
  "lossless/num_tokens",
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
      <Acceptance run={run} acceptance={series("rollout/acceptance_length_tokens")} palette={palette} />
      <Speedup
        run={run}
        generation={series("speedup/generation_ratio")}
        step={series("speedup/step_ratio")}
        palette={palette}
      />
      <Losslessness
        distance={series("lossless/ks_distance")}
        pValue={series("lossless/ks_p_value")}
        numTokens={latestValue(series("lossless/num_tokens"))}
        palette={palette}
      />
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

function Acceptance({ run, acceptance, palette }: { run: RunRead; acceptance?: Columns; palette: Palette }) {
  const k = draftLength(run);
  return (
    <KeyFigure
      title="Acceptance length"
      value={formatNumber(latestValue(acceptance))}
      suffix={k === null ? "" : `of ${k + 1}`}
      course={acceptance}
      colour={palette.acceptance ?? "var(--accent)"}
      hint={k === null ? "Not speculating: drafter none" : `Tokens per verification round, k = ${k}`}
    />
  );
}

function Speedup(props: { run: RunRead; generation?: Columns; step?: Columns; palette: Palette }) {
  const { run, generation, step, palette } = props;
  const speedup = latestValue(generation);
  const ofStep = latestValue(step);
  const interval = getAt(run.config, ["probe", "interval_steps"]);
  const measured = interval === 0 ? "The probe is switched off" : `Measured every ${interval} steps`;
  const waiting = draftLength(run) === null ? "Nothing to measure without a drafter" : measured;
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

function Losslessness(props: {
  distance?: Columns;
  pValue?: Columns;
  numTokens: number | null;
  palette: Palette;
}) {
  const { distance, pValue, numTokens, palette } = props;
  const verdict = judge(distance, pValue);
  const words = { lossless: "Lossless", drift: `Drift at step ${verdict.step}`, unmeasured: "–" }[
    verdict.state
  ];
  const rule = `Drift is said when a step's distance exceeds ${MIN_DRIFT_DISTANCE} with a p-value that would come up by
chance in ${formatPercent(FALSE_ALARM_RATE)} of runs.`;
  return (
    <KeyFigure
      title="Losslessness"
      value={<span className={`verdict verdict-${verdict.state}`}>{words}</span>}
      course={distance}
      colour={palette.exactness ?? "var(--accent)"}
      hint={
        verdict.state === "unmeasured"
          ? "Audited at every step"
          : `Distance ${formatNumber(verdict.distance, 2)}${numTokens ? ` over ${formatCount(numTokens)} tokens` : ""}`
      }
      explanation={rule}
      hasChange={false}
    />
  );
}

interface KeyFigureProps {
  title: string;
  value: ReactNode;
  suffix?: string;
  course: Columns | undefined;
  colour: string;
  hint: string;
  explanation?: string;
  hasChange?: boolean;
}

function KeyFigure({
  title,
  value,
  suffix,
  course,
  colour,
  hint,
  explanation,
  hasChange = true,
}: KeyFigureProps) {
  const change = hasChange ? changeOf(course) : null;
  return (
    <section className="key-figure" title={explanation}>
      <h2>{title}</h2>
      <div className="key-value">
        <span className="big">{value}</span>
        {suffix && <span className="muted">{suffix}</span>}
        {change !== null && <span className="change">{formatChange(change)} since start</span>}
      </div>
      <Sparkline columns={course} colour={colour} />
      <p className="muted small">{hint || " "}</p>
    </section>
  );
}

function changeOf(columns: Columns | undefined): number | null {
  const [first, last] = [firstValue(columns), latestValue(columns)];
  return first === null || last === null || (columns?.step.length ?? 0) < 2 ? null : last - first;
}

function sinceStart(columns: Columns | undefined, factor: number): string {
  const change = changeOf(columns);
  return change === null ? "" : ` (${formatChange(change * factor)} points)`;
}

function draftLength(run: RunRead): number | null {
  const length = getAt(run.config, ["drafter", "draft_length"]);
  return typeof length === "number" ? length : null;
}
