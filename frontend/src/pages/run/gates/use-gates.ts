import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, type RunRead, type Schemas, unwrap } from "../../../api/client.ts";
import { useStream } from "../../../stream/use-stream.ts";

export type RunGates = Schemas["RunGates"];
export type GateResult = Schemas["GateResult"];

export function gatesQuery(runId: string, verdict: RunRead["gates_verdict"]) {
  return queryOptions({
    queryKey: ["gates", runId, verdict],
    queryFn: () => unwrap(api.GET("/api/v1/runs/{run_id}/gates", { params: { path: { run_id: runId } } })),
    placeholderData: (previous) => previous,
  });
}

/** What came of the run's gates; asked again when it has ended and whenever it is judged anew. */
export function useGates({ id, gates_verdict }: RunRead): RunGates | undefined {
  const queryClient = useQueryClient();
  const query = gatesQuery(id, gates_verdict);
  useStream(id, (event) => {
    if (event.kind === "resync" || (event.kind === "run" && event.body.gates_verdict)) {
      void queryClient.invalidateQueries({ queryKey: query.queryKey });
    }
  });
  return useQuery(query).data;
}
