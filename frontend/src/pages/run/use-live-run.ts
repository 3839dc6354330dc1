import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { RunRead } from "../../api/client.ts";
import { runQuery } from "../../api/queries.ts";
import { useStream } from "../../stream/use-stream.ts";

/** The run is asked for again at most this often; stage, step and status move at once by the stream. */
const REFRESH_INTERVAL_MS = 1_000;

/** A run that stays up to date while it is shown. */
export function useLiveRun(runId: string) {
  const queryClient = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const { queryKey } = runQuery(runId);

  useStream(runId, (event) => {
    if (event.kind === "run") {
      queryClient.setQueryData<RunRead>(queryKey, (run) => run && { ...run, ...event.body });
    }
    const isFinal =
      event.kind === "run" && ["succeeded", "failed", "stopped"].includes(event.body.status ?? "");
    if (event.kind === "log" || (timer.current && !isFinal)) return;
    clearTimeout(timer.current);
    const refresh = () => {
      timer.current = undefined;
      void queryClient.invalidateQueries({ queryKey });
    };
    timer.current = setTimeout(refresh, isFinal ? 0 : REFRESH_INTERVAL_MS);
  });
  return useQuery(runQuery(runId));
}
