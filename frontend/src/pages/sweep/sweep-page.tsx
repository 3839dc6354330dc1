import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { api, type RunStatus, type Schemas, unwrap } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { sweepQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { Page } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { STATUSES } from "../../design/status.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { Labels } from "../runs/run-table.tsx";
import { SweepTable } from "./sweep-table.tsx";
import "./sweep.css";

type Sweep = Schemas["SweepRead"];

export function SweepPage() {
  const { sweepId = "" } = useParams();
  const sweep = useQuery(sweepQuery(sweepId));
  if (sweep.data) return <SweepView sweep={sweep.data} />;
  if (sweep.error instanceof ApiProblem && [404, 422].includes(sweep.error.status)) {
    return (
      <Empty title="There is no such sweep.">
        <p>
          It may be on another server, or its address was cut. <Link to="/runs">See the runs</Link>
        </p>
      </Empty>
    );
  }
  if (sweep.error) return <ProblemNote error={sweep.error} onRetry={() => sweep.refetch()} />;
  return <Waiting>Fetching the sweep.</Waiting>;
}

function SweepView({ sweep }: { sweep: Sweep }) {
  return (
    <Page title={sweep.name} actions={!sweep.is_ended && <StopButton sweep={sweep} />}>
      <p className="muted small sweep-facts">
        Sweep <span className="mono">{sweep.id.slice(0, 8)}</span> · {sweep.cluster}
        {sweep.created_by && ` · ${sweep.created_by}`} · created <RelativeTime time={sweep.created_at} />
        {" · "}
        {countWords(sweep)}
        {sweep.max_concurrent !== null && ` · at most ${sweep.max_concurrent} at once`}
      </p>
      <Labels labels={sweep.labels} />
      {sweep.notes && <p className="run-notes">{sweep.notes}</p>}
      <SweepTable sweep={sweep} />
    </Page>
  );
}

function countWords(sweep: Sweep): string {
  const counts = Object.entries(sweep.num_runs_by_status);
  return counts
    .map(([status, count]) => `${count} ${STATUSES[status as RunStatus].word.toLowerCase()}`)
    .join(", ");
}

function StopButton({ sweep }: { sweep: Sweep }) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const stop = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/sweeps/{sweep_id}/stop", { params: { path: { sweep_id: sweep.id } } })),
    onSuccess: (stopped) => queryClient.setQueryData(sweepQuery(sweep.id).queryKey, stopped),
  });
  const isStopping = sweep.runs.every((run) => run.is_ended || run.is_stop_requested);
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
        disabled={stop.isPending || isStopping}
      >
        {isStopping ? "Stopping" : "Stop all"}
      </button>
      {stop.error && <ProblemNote error={stop.error} />}
      {isAsking && (
        <Confirm
          title={`Stop all runs of “${sweep.name}”?`}
          action="Stop the sweep"
          onConfirm={confirm}
          onCancel={() => setAsking(false)}
        >
          <p>
            Those that wait end at once, the others finish the stage they are in. Stopped runs cannot go on.
          </p>
        </Confirm>
      )}
    </>
  );
}
