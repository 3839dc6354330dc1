import { useMutation, useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "../api/client.ts";
import { ProblemNote, Waiting } from "../design/states.tsx";

type Check = Schemas["ClusterCheck"];

const POLL_INTERVAL_MS = 2_000;
const GOING: Check["state"][] = ["pending", "running"];

/** Has a job look at the cluster's machines, and says what it found. */
export function ClusterCheck({ name }: { name: string }) {
  const begin = useMutation({
    mutationFn: () => unwrap(api.POST("/api/v1/clusters/{name}/checks", { params: { path: { name } } })),
  });
  const checkId = begin.data?.id ?? "";
  const check = useQuery({
    queryKey: ["clusters", name, "checks", checkId],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/clusters/{name}/checks/{check_id}", {
          params: { path: { name, check_id: checkId } },
        }),
      ),
    enabled: checkId !== "",
    refetchInterval: (query) =>
      query.state.data && !GOING.includes(query.state.data.state) ? false : POLL_INTERVAL_MS,
  });
  const isGoing = begin.isPending || (checkId !== "" && (!check.data || GOING.includes(check.data.state)));
  const error = begin.error ?? check.error;
  return (
    <div className="cluster-check">
      <button type="button" className="button" disabled={isGoing} onClick={() => begin.mutate()}>
        Check its machines
      </button>
      {isGoing && !error && (
        <Waiting>
          A job looks at versions, GPUs, the shared folder and the way to this service. Its packages may have
          to be installed first.
        </Waiting>
      )}
      {error && <ProblemNote error={error} />}
      {check.data && !isGoing && <Findings check={check.data} />}
    </div>
  );
}

/** What was found, what is wrong first; without findings, how the job ended. */
export function Findings({ check }: { check: Check }) {
  if (check.findings.length === 0)
    return (
      <>
        <p>The check ended without findings. Its last lines:</p>
        <pre className="check-log">{check.log.join("\n")}</pre>
      </>
    );
  const wrongFirst = check.findings.toSorted((a, b) => Number(a.is_ok) - Number(b.is_ok));
  return (
    <ul className="findings">
      {wrongFirst.map((finding) => (
        <li key={`${finding.name} ${finding.detail}`}>
          <span className={`badge tone-${finding.is_ok ? "succeeded" : "failed"}`}>
            {finding.is_ok ? "OK" : "Wrong"}
          </span>
          <span>
            <span className="mono">{finding.name}</span> <span className="muted">{finding.detail}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
