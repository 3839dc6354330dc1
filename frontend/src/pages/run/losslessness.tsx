import type { RunRead } from "../../api/client.ts";
import { formatCount, formatNumber, formatPercent } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";
import { latestValue } from "../../series/columns.ts";
import { useSeries } from "../../series/use-series.ts";
import { useRunAlarms } from "./alarms/use-alarms.ts";
import { KeyFigure } from "./key-figure.tsx";
import { FALSE_ALARM_RATE, judge, judgeByAlarms, MIN_DRIFT_DISTANCE, type Verdict } from "./lossless.ts";

const DISTANCE = "lossless/ks_distance";
const EVIDENCE = "lossless/log10_e_value";
const OF_RUN = "lossless/run_ks_distance";
const NAMES = [DISTANCE, EVIDENCE, OF_RUN, "lossless/ks_p_value", "lossless/num_tokens"];

/** Whether the samples have followed the policy: the audit's alarm, with the distance and the evidence behind it. */
export function Losslessness({ run, colour }: { run: RunRead; colour: string }) {
  const series = useSeries(NAMES);
  const alarms = useRunAlarms();
  const evidence = latestValue(series(EVIDENCE));
  const verdict =
    judgeByAlarms(alarms, series(DISTANCE), series(EVIDENCE)) ??
    judge(series(DISTANCE), series("lossless/ks_p_value"));
  const words = { lossless: "Lossless", drift: `Drift at step ${verdict.step}`, unmeasured: "–" };
  const numTokens = latestValue(series("lossless/num_tokens"));
  return (
    <KeyFigure
      title="Losslessness"
      value={<span className={`verdict verdict-${verdict.state}`}>{words[verdict.state]}</span>}
      course={series(DISTANCE)}
      colour={colour}
      hint={hintOf(verdict, latestValue(series(OF_RUN)), numTokens)}
      explanation={evidence === null ? OLD_RULE : evidenceWords(evidence, run.config)}
      hasChange={false}
    />
  );
}

/** Of runs from before the sequential test. */
const OLD_RULE = `Drift is said when a step's distance exceeds ${MIN_DRIFT_DISTANCE} with a p-value that would come up by
chance in ${formatPercent(FALSE_ALARM_RATE)} of runs.`;

function hintOf({ state, distance }: Verdict, ofRun: number | null, numTokens: number | null): string {
  if (state === "unmeasured") return "Audited at every step";
  const words = `Distance ${formatNumber(distance, 2)}`;
  if (ofRun !== null) return `${words}, over the run ${formatNumber(ofRun, 2)}`;
  return numTokens ? `${words} over ${formatCount(numTokens)} tokens` : words;
}

function evidenceWords(evidence: number, config: unknown): string {
  const rate = Number(getAt(config, ["audit", "false_alarm_rate"]) ?? FALSE_ALARM_RATE);
  return `Evidence against exact sampling over the run: log10 e-value ${formatNumber(evidence)}. Exact sampling ever reaches ${formatNumber(-Math.log10(rate))}, the alarm's limit, in ${formatPercent(rate)} of runs at most.`;
}
