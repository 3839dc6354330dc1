import { Link } from "react-router";
import type { RunRead } from "../../../api/client.ts";
import { FailedIcon, LostIcon, SucceededIcon } from "../../../design/icons.tsx";
import { RelativeTime } from "../../../design/time.tsx";
import { formatNumber, plural } from "../../../format/number.ts";
import "./gates.css";
import { IntervalMark, toneOf } from "./interval-mark.tsx";
import { type GateResult, type RunGates, useGates } from "./use-gates.ts";

/** What the run has to come to, and whether it did, with the evidence. */
export function Gates({ run }: { run: RunRead }) {
  const found = useGates(run);
  return found ? <GatesPanel found={found} /> : null;
}

export function GatesPanel({ found }: { found: RunGates }) {
  const { evaluation, gates } = found;
  if (!evaluation && gates.length === 0) return null;
  return (
    <section className="card gates" aria-label="Gates">
      <h2>
        Gates <Summary found={found} />
      </h2>
      <ul>
        {evaluation
          ? evaluation.results.map((result, index) => <Result key={keyOf(result, index)} result={result} />)
          : gates.map(({ assertion, name }, index) => (
              <li className="gate" key={keyOf({ assertion }, index)}>
                <span className="gate-verdict muted">Pending</span>
                <Title name={name ?? assertion} assertion={assertion} />
              </li>
            ))}
      </ul>
    </section>
  );
}

function keyOf({ assertion }: { assertion: string }, index: number): string {
  return `${index} ${assertion}`;
}

function Summary({ found: { evaluation, gates, verdict } }: { found: RunGates }) {
  if (!evaluation)
    return <span className="muted small">{plural(gates.length, "gate")}, judged when the run has ended</span>;
  const { num_gates, num_failed, created_at, trigger, run_status } = evaluation;
  const isPreview = verdict === "pending";
  return (
    <span className="muted small">
      {num_gates - num_failed} of {num_gates} passed, judged <RelativeTime time={created_at} />
      {trigger === "request" && evaluation.evaluated_by && ` for ${evaluation.evaluated_by}`}
      {isPreview && ` while the run was ${run_status}; the verdict comes at its end`}
    </span>
  );
}

const WORDS: Record<GateResult["verdict"], string> = {
  passed: "Passed",
  failed: "Failed",
  undecided: "Undecided",
  no_data: "No data",
  no_baseline: "No baseline",
};

function Result({ result }: { result: GateResult }) {
  const tone = toneOf(result);
  const Icon = { succeeded: SucceededIcon, failed: FailedIcon, lost: LostIcon }[tone];
  return (
    <li className="gate">
      <span className="gate-verdict">
        <span className={`badge tone-${tone}`}>
          <Icon />
          {WORDS[result.verdict]}
        </span>
      </span>
      <Title name={result.name} assertion={result.assertion} />
      <span className="gate-figure">
        {result.estimate !== null && (
          <>
            <strong>{formatNumber(result.estimate, 4)}</strong> <Unit unit={result.unit} />
          </>
        )}
      </span>
      <IntervalMark result={result} />
      <p className="gate-reason muted small">
        {result.reason} <Baseline result={result} />
      </p>
    </li>
  );
}

function Title({ name, assertion }: { name: string; assertion: string }) {
  return (
    <span className="gate-title">
      {name !== assertion && <span>{name}</span>}
      <code className="mono small">{assertion}</code>
    </span>
  );
}

function Unit({ unit }: { unit: string | null }) {
  return unit && unit !== "1" ? <span className="muted small">{unit}</span> : null;
}

function Baseline({ result: { baseline } }: { result: GateResult }) {
  if (!baseline) return null;
  return (
    <span>
      Baseline {formatNumber(baseline.estimate, 4)} of{" "}
      <Link to={`/runs/${baseline.run_id}`}>{baseline.run_name}</Link>
      {baseline.is_paired ? ", step by step." : "."}
    </span>
  );
}
