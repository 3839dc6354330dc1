import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Schemas } from "../api/client.ts";
import { clusterSharesQuery, clustersQuery, sessionQuery } from "../api/queries.ts";
import { ProblemNote } from "../design/states.tsx";
import { EditFooter } from "../edits/edit-footer.tsx";
import { editableCluster } from "../edits/kinds.ts";
import { useEdit } from "../edits/use-edit.ts";
import { plural } from "../format/number.ts";
import { FieldRow, NumberInput } from "../forms/field.tsx";
import "../edits/edits.css";

type Cluster = Schemas["ClusterRead"];
type Share = Schemas["ClusterShare"];
type Limit = keyof typeof NO_LIMIT;

const REFRESH_INTERVAL_MS = 10_000;
/** What an empty field means: only the places of the whole cluster cannot be without a limit. */
const NO_LIMIT = {
  max_concurrent_runs: undefined,
  max_concurrent_runs_per_user: null,
  max_concurrent_runs_per_project: null,
};
const FIELDS: { field: Limit; label: string; help: string }[] = [
  { field: "max_concurrent_runs", label: "Places", help: "Runs at once. Further ones wait." },
  { field: "max_concurrent_runs_per_user", label: "Of each user at most", help: "Empty for no limit." },
  { field: "max_concurrent_runs_per_project", label: "Of each project at most", help: "Empty for no limit." },
];

/** How many runs a cluster carries, of whom, and who waits; for administrators also the limits to change. */
export function ClusterLimits({ cluster }: { cluster: Cluster }) {
  const [isEditing, setEditing] = useState(false);
  const isAdmin = useQuery(sessionQuery).data?.user.is_admin ?? false;
  const shares = useQuery({ ...clusterSharesQuery(cluster.name), refetchInterval: REFRESH_INTERVAL_MS });
  const isOfEnvironment = cluster.name === "local";
  return (
    <section className="cluster-limits" aria-label={`Limits of ${cluster.name}`}>
      <div className="card-head">
        <h3>Queue and limits</h3>
        {isAdmin && !isOfEnvironment && !isEditing && (
          <button type="button" className="button" onClick={() => setEditing(true)}>
            Change limits
          </button>
        )}
      </div>
      {isEditing ? (
        <LimitsForm cluster={cluster} onClose={() => setEditing(false)} />
      ) : (
        <Words cluster={cluster} />
      )}
      {isAdmin && isOfEnvironment && (
        <p className="muted small">
          Set by <code>FOREDECK_MAX_CONCURRENT_RUNS</code>, <code>FOREDECK_MAX_CONCURRENT_RUNS_PER_USER</code>{" "}
          and <code>FOREDECK_MAX_CONCURRENT_RUNS_PER_PROJECT</code> where the service is started.
        </p>
      )}
      {shares.error && <ProblemNote error={shares.error} onRetry={() => shares.refetch()} />}
      {shares.data && (
        <div className="shares">
          <Shares
            title="User"
            shares={shares.data.users}
            limit={cluster.max_concurrent_runs_per_user}
            places={cluster.max_concurrent_runs}
          />
          <Shares
            title="Project"
            shares={shares.data.projects}
            limit={cluster.max_concurrent_runs_per_project}
            places={cluster.max_concurrent_runs}
          />
        </div>
      )}
    </section>
  );
}

function Words({ cluster }: { cluster: Cluster }) {
  const { max_concurrent_runs, max_concurrent_runs_per_user, max_concurrent_runs_per_project } = cluster;
  return (
    <dl className="facts">
      <dt>Places</dt>
      <dd>
        {cluster.num_live_runs} of {max_concurrent_runs} taken, {cluster.num_queued_runs} waiting
      </dd>
      <dt>Of each user</dt>
      <dd>{limitWords(max_concurrent_runs_per_user)}</dd>
      <dt>Of each project</dt>
      <dd>{limitWords(max_concurrent_runs_per_project)}</dd>
    </dl>
  );
}

function limitWords(limit: number | null): string {
  return limit === null ? "no limit but the places" : `at most ${plural(limit, "run")} at once`;
}

interface SharesProps {
  title: string;
  shares: Share[];
  limit: number | null;
  places: number;
}

/** Who holds places and who waits; nothing where nobody does. */
export function Shares({ title, shares, limit, places }: SharesProps) {
  if (shares.length === 0) return null;
  const most = Math.min(limit ?? places, places);
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col" className="number">
            In use
          </th>
          <th scope="col" className="number">
            Waiting
          </th>
        </tr>
      </thead>
      <tbody>
        {shares.map(({ name, num_live_runs, num_queued_runs }) => (
          <tr key={name}>
            <th scope="row">{name ?? "nobody any more"}</th>
            <td className="number">
              {num_live_runs} of {most}
            </td>
            <td className="number">{num_queued_runs}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The limits that a change sends: those that were typed and differ. An empty field lifts its limit. */
export function changedLimits(
  base: Pick<Cluster, Limit>,
  typed: Partial<Record<Limit, unknown>>,
): Schemas["ClusterUpdate"] {
  const entries = Object.entries(typed).map(([field, value]) => [field, value ?? NO_LIMIT[field as Limit]]);
  return Object.fromEntries(
    entries.filter(([field, value]) => value !== undefined && value !== base[field as Limit]),
  );
}

function LimitsForm({ cluster, onClose }: { cluster: Cluster; onClose: () => void }) {
  const queryClient = useQueryClient();
  const [typed, setTyped] = useState<Partial<Record<Limit, unknown>>>({});
  const edit = useEdit(
    editableCluster(cluster.name),
    cluster,
    () => void queryClient.invalidateQueries({ queryKey: clustersQuery.queryKey }),
    onClose,
  );
  const { base, save, refused } = edit;
  const isMissing = "max_concurrent_runs" in typed && typed.max_concurrent_runs === undefined;
  const body = changedLimits(base, typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isMissing) return;
    if (Object.keys(body).length === 0) onClose();
    else save.mutate(body);
  };
  return (
    <form className="edit-form" onSubmit={submit} noValidate aria-label={`Change limits of ${cluster.name}`}>
      {FIELDS.map(({ field, label, help }) => {
        const id = `${cluster.name}-${field}`;
        const messages = refused.filter(({ pointer }) => pointer === `/${field}`).map(({ detail }) => detail);
        if (isMissing && field === "max_concurrent_runs") messages.push("A cluster has at least one place.");
        return (
          <FieldRow key={field} id={id} label={label} help={help} messages={messages}>
            <NumberInput
              id={id}
              value={field in typed ? typed[field] : (base[field] ?? undefined)}
              placeholder={field === "max_concurrent_runs" ? String(base[field]) : "no limit"}
              aria-invalid={messages.length > 0}
              aria-describedby={`${id}-help ${id}-problems`}
              onChange={(value) => setTyped({ ...typed, [field]: value })}
            />
          </FieldRow>
        );
      })}
      <EditFooter edit={edit} own={Object.keys(body)} onDrop={() => setTyped({})} onClose={onClose} />
    </form>
  );
}
