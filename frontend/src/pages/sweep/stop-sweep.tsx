import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { sweepQuery, sweepsKey } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { ProblemNote } from "../../design/states.tsx";

interface StopSweepProps {
  sweep: Pick<Schemas["SweepSummary"], "id" | "name">;
  /** All that can be stopped is being stopped. */
  isStopping: boolean;
}

/** Stops all runs of a sweep, after a question. */
export function StopSweep({ sweep, isStopping }: StopSweepProps) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const stop = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/sweeps/{sweep_id}/stop", { params: { path: { sweep_id: sweep.id } } })),
    onSuccess: (stopped) => {
      queryClient.setQueryData(sweepQuery(sweep.id).queryKey, stopped);
      void queryClient.invalidateQueries({ queryKey: sweepsKey });
    },
  });
  const confirm = () => {
    setAsking(false);
    stop.mutate();
  };
  const isUnderWay = isStopping || stop.isPending || stop.isSuccess;
  return (
    <>
      <button
        type="button"
        className="button"
        onClick={() => setAsking(true)}
        disabled={isUnderWay}
        aria-label={`Stop all runs of ${sweep.name}`}
      >
        {isUnderWay ? "Stopping" : "Stop all"}
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
