import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client.ts";
import { clustersQuery, projectsQuery } from "../../api/queries.ts";
import { plural } from "../../format/number.ts";
import { FieldRow, NumberInput } from "../../forms/field.tsx";
import type { Problems } from "../../forms/problems.ts";
import type { Draft } from "./draft.ts";
import { GatesFields } from "./gates-fields.tsx";

interface RunFieldsProps {
  draft: Draft;
  problems: Problems;
  onChange: (changes: Partial<Draft>) => void;
}

/** What is not part of the configuration: name, labels, place, notes, attempts. */
export function RunFields({ draft, problems, onChange }: RunFieldsProps) {
  const clusters = useQuery(clustersQuery);
  const names = clusters.data?.map(({ name }) => name) ?? [];
  const choices = names.includes(draft.cluster) ? names : [draft.cluster, ...names];
  const projects = useQuery(projectsQuery).data?.filter(({ role }) => role !== "viewer") ?? [];
  const at = (pointer: string) => messagesUnder(problems, pointer);
  return (
    <fieldset className="card group">
      <legend>Run</legend>
      <FieldRow
        id="run-name"
        label="Name"
        help="What people call it; need not be unique."
        messages={at("/name")}
      >
        <input
          id="run-name"
          className="input wide"
          value={draft.name}
          placeholder="eagle3 k=3"
          required
          maxLength={120}
          aria-invalid={at("/name").length > 0}
          aria-describedby="run-name-help run-name-problems"
          onChange={(event) => onChange({ name: event.target.value })}
        />
      </FieldRow>
      {(projects.length > 1 || at("/project").length > 0) && (
        <FieldRow id="run-project" label="Project" help="Whose members see it." messages={at("/project")}>
          <select
            id="run-project"
            className="input wide"
            value={draft.project || (projects.some(({ name }) => name === "default") ? "default" : "")}
            aria-invalid={at("/project").length > 0}
            aria-describedby="run-project-help run-project-problems"
            onChange={(event) => onChange({ project: event.target.value })}
          >
            {!projects.some(({ name }) => name === (draft.project || "default")) && (
              <option value={draft.project}>{draft.project || "choose one"}</option>
            )}
            {projects.map(({ id, name }) => (
              <option key={id}>{name}</option>
            ))}
          </select>
        </FieldRow>
      )}
      <FieldRow
        id="run-cluster"
        label="Cluster"
        help={clusterHelp(clusters.data?.find(({ name }) => name === draft.cluster))}
        messages={at("/cluster")}
      >
        <select
          id="run-cluster"
          className="input wide"
          value={draft.cluster}
          aria-invalid={at("/cluster").length > 0}
          aria-describedby="run-cluster-help run-cluster-problems"
          onChange={(event) => onChange({ cluster: event.target.value })}
        >
          {choices.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </FieldRow>
      <FieldRow
        id="run-priority"
        label="Priority"
        help="In the queue of the cluster: each level is worth ten minutes of waiting. Allowed: −100 to 100; above 50 is for those who administer the project."
        messages={at("/priority")}
        reset={draft.priority === undefined ? undefined : () => onChange({ priority: undefined })}
        resetTo="0"
      >
        <NumberInput
          id="run-priority"
          value={draft.priority}
          placeholder="0"
          aria-invalid={at("/priority").length > 0}
          aria-describedby="run-priority-help run-priority-problems"
          onChange={(priority) => onChange({ priority })}
        />
      </FieldRow>
      <FieldRow
        id="run-labels"
        label="Labels"
        help="For finding it again: key: value, separated by commas."
        messages={at("/labels")}
      >
        <input
          id="run-labels"
          className="input wide"
          value={draft.labels}
          placeholder="team: post-training"
          aria-invalid={at("/labels").length > 0}
          aria-describedby="run-labels-help run-labels-problems"
          onChange={(event) => onChange({ labels: event.target.value })}
        />
      </FieldRow>
      <FieldRow id="run-notes" label="Notes" help="Why you launch it." messages={at("/notes")}>
        <textarea
          id="run-notes"
          className="input wide"
          rows={2}
          value={draft.notes}
          aria-invalid={at("/notes").length > 0}
          aria-describedby="run-notes-help run-notes-problems"
          onChange={(event) => onChange({ notes: event.target.value })}
        />
      </FieldRow>
      <GatesFields gates={draft.gates} problems={problems} onChange={(gates) => onChange({ gates })} />
      <FieldRow
        id="run-max-attempts"
        label="Attempts at most"
        help="A crashed run starts again from its last checkpoint; it fails once this many attempts brought no new one. Allowed: 1 to 20."
        messages={at("/max_attempts")}
        reset={draft.maxAttempts === undefined ? undefined : () => onChange({ maxAttempts: undefined })}
        resetTo="3"
      >
        <NumberInput
          id="run-max-attempts"
          value={draft.maxAttempts}
          placeholder="3"
          aria-invalid={at("/max_attempts").length > 0}
          aria-describedby="run-max-attempts-help run-max-attempts-problems"
          onChange={(maxAttempts) => onChange({ maxAttempts })}
        />
      </FieldRow>
    </fieldset>
  );
}

/** What a run that goes there now would meet. */
export function clusterHelp(cluster: Schemas["ClusterRead"] | undefined): string {
  if (!cluster) return "The Ray cluster that carries it.";
  const { num_live_runs, num_queued_runs, max_concurrent_runs } = cluster;
  const places = `${num_live_runs} of ${plural(max_concurrent_runs, "place")} taken`;
  const waits = num_queued_runs > 0 ? `, ${plural(num_queued_runs, "run")} waiting` : "";
  const isFull = num_live_runs >= max_concurrent_runs || num_queued_runs > 0;
  return `The Ray cluster that carries it: ${places}${waits}${isFull ? ". Yours would wait in its queue." : "."}`;
}

/** Messages of a field and of anything inside it, such as one label. */
function messagesUnder(problems: Problems, pointer: string): string[] {
  const inside = Object.entries(problems).filter(([at]) => at === pointer || at.startsWith(`${pointer}/`));
  return inside.flatMap(([at, messages]) =>
    messages.map((message) => (at === pointer ? message : `${at.slice(pointer.length + 1)}: ${message}`)),
  );
}
