import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { api, type RunRead, unwrap } from "../../api/client.ts";
import { runQuery } from "../../api/queries.ts";
import { useMayChange } from "../../api/rights.ts";
import { Confirm } from "../../design/confirm.tsx";
import { ProblemNote } from "../../design/states.tsx";
import { StatusBadge } from "../../design/status.tsx";
import { RelativeTime, useNow } from "../../design/time.tsx";
import { DetailsForm } from "../../edits/details-form.tsx";
import { editableRun } from "../../edits/kinds.ts";
import { formatDuration } from "../../format/time.ts";
import { Labels, QueuePlace } from "../runs/run-table.tsx";
import { GatesBadge } from "./gates/gates-badge.tsx";
import { RunProgress } from "./progress.tsx";

/** What the run is, how far it has come, and what can be done with it. */
export function RunHeader({ run }: { run: RunRead }) {
  const [isEditing, setEditing] = useState(false);
  const mayChange = useMayChange(run.project);
  const queryClient = useQueryClient();
  const show = (current: RunRead) => queryClient.setQueryData(runQuery(run.id).queryKey, current);
  return (
    <header className="run-head">
      <div className="run-title">
        <div className="run-title-line">
          <h1>{run.name}</h1>
          <StatusBadge status={run.status} isStopping={run.is_stop_requested && !run.is_ended} />
          <GatesBadge run={run} />
        </div>
        <p className="muted small run-origin">
          <RunFacts run={run} />
        </p>
        <Labels labels={run.labels} />
      </div>
      <div className="run-head-progress">
        <RunProgress run={run} />
        <p className="muted small">
          <Timing run={run} />
        </p>
      </div>
      <div className="actions">
        {mayChange && (
          <button type="button" className="button" onClick={() => setEditing(true)} disabled={isEditing}>
            Edit
          </button>
        )}
        <Link className="button" to={`/launch?clone=${run.id}`}>
          Clone
        </Link>
        {mayChange && !run.is_ended && <StopButton run={run} />}
      </div>
      <StatusReason run={run} />
      {isEditing && (
        <DetailsForm
          noun="run"
          editable={editableRun(run.id)}
          seen={run}
          hasPriority={run.status === "queued"}
          onChanged={show}
          onClose={() => setEditing(false)}
        />
      )}
      {!isEditing && run.notes && <p className="run-notes">{run.notes}</p>}
    </header>
  );
}

function RunFacts({ run }: { run: RunRead }) {
  return (
    <>
      <span className="mono">{run.id.slice(0, 8)}</span> · {run.cluster}
      {run.created_by && ` · ${run.created_by}`} · created <RelativeTime time={run.created_at} />
      {run.status === "queued" && run.queue_position !== null && (
        <>
          {" "}
          · <QueuePlace run={run} />
        </>
      )}
      {run.sweep_id && (
        <>
          {" "}
          · part of <Link to={`/sweeps/${run.sweep_id}`}>a sweep</Link>
        </>
      )}
      {run.current_attempt > 1 && ` · attempt ${run.current_attempt}`}
      {run.cloned_from_id && (
        <>
          {" "}
          · cloned from{" "}
          <Link to={`/runs/${run.cloned_from_id}`} className="mono">
            {run.cloned_from_id.slice(0, 8)}
          </Link>
        </>
      )}
    </>
  );
}

function Timing({ run }: { run: RunRead }) {
  const now = useNow();
  if (!run.started_at) return <>Not started yet</>;
  const until = run.ended_at ? new Date(run.ended_at) : now;
  const elapsed = formatDuration(Math.max(0, (until.getTime() - new Date(run.started_at).getTime()) / 1000));
  if (run.is_ended) return <>Took {elapsed}</>;
  return (
    <>
      {elapsed} so far
      {run.status === "running" && run.eta_s !== null && `, about ${formatDuration(run.eta_s)} to go`}
    </>
  );
}

/** Why the run is in its state, unless it simply runs. */
function StatusReason({ run }: { run: RunRead }) {
  const now = useNow();
  const isPlain = run.status === "running" || run.status === "succeeded";
  const saysNothing = run.status_reason.replace(".", "").toLowerCase() === run.status;
  if (!run.status_reason || isPlain || saysNothing) return null;
  const tone = { failed: "failed", lost: "lost" }[run.status as string] ?? "stopped";
  const silence = run.last_heartbeat_at && (now.getTime() - new Date(run.last_heartbeat_at).getTime()) / 1000;
  return (
    <div className={`note tone-${tone}`} role="status">
      <p className="status-reason">{run.status_reason}</p>
      {run.status === "lost" && silence && (
        <p className="small">Last heard of {formatDuration(silence)} ago.</p>
      )}
      {run.last_checkpoint_step !== null && !run.is_ended && (
        <p className="small">A new attempt goes on from the checkpoint of step {run.last_checkpoint_step}.</p>
      )}
    </div>
  );
}

function StopButton({ run }: { run: RunRead }) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const stop = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/runs/{run_id}/stop", { params: { path: { run_id: run.id } } })),
    onSuccess: (stopped) => queryClient.setQueryData(runQuery(run.id).queryKey, stopped),
  });
  const confirm = () => {
    setAsking(false);
    stop.mutate();
  };
  return (
    <>
      <button
        type="button"
        className="button"
        onClick={() => setAsking(true)}
        disabled={stop.isPending || run.is_stop_requested}
      >
        {run.is_stop_requested ? "Stopping" : "Stop"}
      </button>
      {stop.error && <ProblemNote error={stop.error} />}
      {isAsking && (
        <Confirm
          title={`Stop “${run.name}”?`}
          action="Stop the run"
          onConfirm={confirm}
          onCancel={() => setAsking(false)}
        >
          <p>
            It finishes the stage it is in and ends. A stopped run cannot go on; its clone starts from the
            beginning.
          </p>
        </Confirm>
      )}
    </>
  );
}
