import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client.ts";
import { clustersQuery } from "../api/queries.ts";
import { Page } from "../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../design/states.tsx";
import { formatNumber, plural } from "../format/number.ts";
import { ClusterCheck } from "./cluster-check.tsx";
import { ClusterLimits } from "./cluster-limits.tsx";

type Cluster = Schemas["ClusterRead"];

const REACHABILITY: Record<string, { word: string; tone: string }> = {
  reachable: { word: "Reachable", tone: "succeeded" },
  starting: { word: "Starting", tone: "running" },
  not_started: { word: "Not started", tone: "stopped" },
  unreachable: { word: "Unreachable", tone: "failed" },
};

export function ClustersPage() {
  const clusters = useQuery({ ...clustersQuery, refetchInterval: 10_000 });
  return (
    <Page title="Clusters">
      {clusters.isPending && <Waiting>Asking each cluster whether it answers.</Waiting>}
      {clusters.error && <ProblemNote error={clusters.error} onRetry={() => clusters.refetch()} />}
      {clusters.data?.length === 0 && <Empty title="No cluster is registered." />}
      <ul className="cards">
        {clusters.data?.map((cluster) => (
          <ClusterCard key={cluster.id} cluster={cluster} />
        ))}
      </ul>
      <p className="muted small">
        Register another cluster with <code>foredeck cluster add</code>; correct one with{" "}
        <code>PATCH /api/v1/clusters/NAME</code>.
      </p>
    </Page>
  );
}

function ClusterCard({ cluster }: { cluster: Cluster }) {
  const state = cluster.reachability && REACHABILITY[cluster.reachability.state];
  return (
    <li className="card cluster">
      <div className="card-head">
        <h2>{cluster.name}</h2>
        {state && <span className={`badge tone-${state.tone}`}>{state.word}</span>}
      </div>
      <p className="muted">{cluster.reachability?.detail}</p>
      <dl className="facts">
        <dt>Address</dt>
        <dd className="mono">{cluster.address ?? "this machine, started with the first run"}</dd>
        <dt>Code</dt>
        <dd>
          <Code cluster={cluster} />
        </dd>
        {cluster.reward_modules.length > 0 && (
          <div className="fact">
            <dt>Reward modules</dt>
            <dd className="mono">{cluster.reward_modules.join(", ")}</dd>
          </div>
        )}
        {cluster.data_dirs !== null && cluster.data_dirs.length > 0 && (
          <div className="fact">
            <dt>Models and data</dt>
            <dd className="mono">{cluster.data_dirs.join(", ")}</dd>
          </div>
        )}
        <dt>Storage</dt>
        <dd className="mono">{cluster.storage_dir}</dd>
        <Resources resources={cluster.resources} />
      </dl>
      <ClusterLimits cluster={cluster} />
      {!cluster.is_embedded && <ClusterCheck name={cluster.name} />}
    </li>
  );
}

/** How the workers package comes to the cluster's machines. */
function Code({ cluster: { code, python } }: { cluster: Cluster }) {
  if (code.kind === "installed")
    return (
      <>
        installed for <span className="mono">{python}</span>
      </>
    );
  if (code.kind === "container")
    return (
      <>
        container image <span className="mono">{code.image}</span>
      </>
    );
  const archives = [code.working_dir, ...(code.py_modules ?? [])].filter((archive) => archive != null);
  const fetched = [...archives, ...(code.pip ?? [])];
  return (
    <details>
      <summary>
        Ray fetches {plural(archives.length, "archive")} and {plural(code.pip?.length ?? 0, "pinned package")}
      </summary>
      {fetched.map((each) => (
        <p key={each} className="mono">
          {each}
        </p>
      ))}
    </details>
  );
}

function Resources({ resources }: { resources: Cluster["resources"] }) {
  const shown = Object.entries(resources ?? {}).filter(([name]) => /^(CPU|GPU|memory)$/.test(name));
  return shown.map(([name, { used, total }]) => (
    <div key={name} className="fact">
      <dt>{name === "memory" ? "Memory" : name}</dt>
      <dd>
        {amount(name, used)} of {amount(name, total)}
        {name === "memory" && " GiB"} used
      </dd>
    </div>
  ));
}

function amount(name: string, value: number): string {
  return formatNumber(name === "memory" ? value / 2 ** 30 : value);
}
