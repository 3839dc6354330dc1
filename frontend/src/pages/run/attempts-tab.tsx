import type { RunRead } from "../../api/client.ts";
import { Empty } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { formatDuration } from "../../format/time.ts";

type Attempt = RunRead["attempts"][number];

const OUTCOMES: Record<string, { word: string; tone: string }> = {
  succeeded: { word: "Succeeded", tone: "succeeded" },
  failed: { word: "Failed", tone: "failed" },
  stopped: { word: "Stopped", tone: "stopped" },
  crashed: { word: "Crashed", tone: "lost" },
};

/** Every try at the run, newest first: one Ray job each. */
export function AttemptsTab({ run }: { run: RunRead }) {
  if (run.attempts.length === 0) {
    return <Empty title="No attempt yet.">{run.status_reason && <p>{run.status_reason}</p>}</Empty>;
  }
  return (
    <ol className="cards">
      {run.attempts.toReversed().map((attempt) => (
        <AttemptCard key={attempt.number} attempt={attempt} />
      ))}
    </ol>
  );
}

function AttemptCard({ attempt }: { attempt: Attempt }) {
  const outcome = attempt.outcome ? OUTCOMES[attempt.outcome] : { word: "In progress", tone: "running" };
  return (
    <li className="card">
      <div className="card-head">
        <h2>Attempt {attempt.number}</h2>
        {outcome && <span className={`badge tone-${outcome.tone}`}>{outcome.word}</span>}
      </div>
      {attempt.error && <pre className="attempt-error">{attempt.error}</pre>}
      <dl className="facts">
        <dt>Went on from</dt>
        <dd>
          {attempt.resumed_from_step === null
            ? "the beginning"
            : `the checkpoint of step ${attempt.resumed_from_step}`}
        </dd>
        <dt>Last checkpoint</dt>
        <dd>{attempt.last_checkpoint_step === null ? "none" : `step ${attempt.last_checkpoint_step}`}</dd>
        <dt>Started</dt>
        <dd>{attempt.started_at ? <RelativeTime time={attempt.started_at} /> : "not yet"}</dd>
        <dt>Took</dt>
        <dd>{duration(attempt)}</dd>
        <dt>Ray job</dt>
        <dd className="mono">{attempt.submission_id}</dd>
      </dl>
    </li>
  );
}

function duration({ started_at, ended_at }: Attempt): string {
  if (!started_at || !ended_at) return "–";
  return formatDuration((new Date(ended_at).getTime() - new Date(started_at).getTime()) / 1000);
}
