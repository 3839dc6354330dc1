import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "react-router";
import type { Schemas } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { sweepQuery } from "../../api/queries.ts";
import { useMayChange } from "../../api/rights.ts";
import { Page } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { DetailsForm } from "../../edits/details-form.tsx";
import { editableSweep } from "../../edits/kinds.ts";
import { Labels } from "../runs/run-table.tsx";
import { countWords } from "./counts.tsx";
import { StopSweep } from "./stop-sweep.tsx";
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
  const [isEditing, setEditing] = useState(false);
  const queryClient = useQueryClient();
  const show = (current: Sweep) => queryClient.setQueryData(sweepQuery(sweep.id).queryKey, current);
  const actions = useMayChange(sweep.project) && (
    <>
      <button type="button" className="button" onClick={() => setEditing(true)} disabled={isEditing}>
        Edit
      </button>
      {!sweep.is_ended && (
        <StopSweep
          sweep={sweep}
          isStopping={sweep.runs.every((run) => run.is_ended || run.is_stop_requested)}
        />
      )}
    </>
  );
  return (
    <Page title={sweep.name} actions={actions}>
      <p className="muted small sweep-facts">
        Sweep <span className="mono">{sweep.id.slice(0, 8)}</span> · {sweep.cluster}
        {sweep.created_by && ` · ${sweep.created_by}`} · created <RelativeTime time={sweep.created_at} />
        {" · "}
        {countWords(sweep.num_runs_by_status)}
        {sweep.max_concurrent !== null && ` · at most ${sweep.max_concurrent} at once`}
      </p>
      <Labels labels={sweep.labels} />
      {isEditing && (
        <div className="sweep-edit">
          <DetailsForm
            noun="sweep"
            editable={editableSweep(sweep.id)}
            seen={sweep}
            onChanged={show}
            onClose={() => setEditing(false)}
          />
        </div>
      )}
      {!isEditing && sweep.notes && <p className="run-notes">{sweep.notes}</p>}
      <SweepTable sweep={sweep} />
    </Page>
  );
}
