import { useQuery } from "@tanstack/react-query";
import { Fragment, useMemo, useState } from "react";
import type { RunRead } from "../../../api/client.ts";
import { examplesQuery, runQuery, schemaQuery, validateConfig } from "../../../api/queries.ts";
import { ProblemNote, Waiting } from "../../../design/states.tsx";
import { type ObjectNode, readSchema } from "../../../forms/schema.ts";
import { notableDifference } from "./difference.ts";

const DEFAULTS = "the defaults";
const PARENT = "the run it was cloned from";

/** A table of the settings that differ from the defaults, an example or the run's origin. */
export function Comparison({ run }: { run: RunRead }) {
  const [chosen, setChosen] = useState(run.cloned_from_id ? PARENT : DEFAULTS);
  const examples = useQuery(examplesQuery);
  const schema = useQuery(schemaQuery);
  const root = useMemo(() => schema.data && readSchema(schema.data), [schema.data]);
  const choices = [
    DEFAULTS,
    ...(run.cloned_from_id ? [PARENT] : []),
    ...(examples.data ?? []).map(({ name }) => name),
  ];
  const other = useOther(run, chosen, examples.data?.find(({ name }) => name === chosen)?.config);
  return (
    <section>
      <div className="card-head">
        <h2>Differs from</h2>
        <select
          className="input"
          aria-label="Compare with"
          value={chosen}
          onChange={(event) => setChosen(event.target.value)}
        >
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      </div>
      {other.error && <ProblemNote error={other.error} onRetry={() => other.refetch()} />}
      {schema.error && <ProblemNote error={schema.error} onRetry={() => schema.refetch()} />}
      {(other.isPending || schema.isPending) && <Waiting>Fetching what to compare with.</Waiting>}
      {other.data && root && <Changes root={root} before={other.data} after={run.config} />}
    </section>
  );
}

/** The resolved configuration to compare with. */
function useOther(run: RunRead, chosen: string, example: Record<string, unknown> | undefined) {
  const parent = useQuery({ ...runQuery(run.cloned_from_id ?? ""), enabled: chosen === PARENT });
  const resolved = useQuery({
    queryKey: ["run-config", "resolved", chosen],
    queryFn: async ({ signal }) => (await validateConfig(example ?? {}, signal)).config,
    enabled: chosen === DEFAULTS || (chosen !== PARENT && example !== undefined),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (chosen !== PARENT) return resolved;
  return {
    data: parent.data?.config,
    error: parent.error,
    isPending: parent.isPending,
    refetch: parent.refetch,
  };
}

function Changes({ root, before, after }: { root: ObjectNode; before: unknown; after: unknown }) {
  const changes = notableDifference(root, before, after);
  if (changes.length === 0) return <p className="muted">No setting differs.</p>;
  return (
    <table className="changes">
      <thead>
        <tr>
          <th scope="col">Setting</th>
          <th scope="col">There</th>
          <th scope="col">Here</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ path, before: there, after: here }) => (
          <tr key={path}>
            <th scope="row" className="mono">
              {path.split(/(?<=[._])/).map((part, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a part may occur twice, and parts never move.
                <Fragment key={index}>
                  {part}
                  <wbr />
                </Fragment>
              ))}
            </th>
            <td className="mono muted">{words(there)}</td>
            <td className="mono">{words(here)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function words(value: unknown): string {
  return value === undefined ? "not set" : JSON.stringify(value);
}
