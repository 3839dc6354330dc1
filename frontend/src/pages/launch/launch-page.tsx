import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "react-router";
import type { RunRead, Schemas } from "../../api/client.ts";
import { examplesQuery, runQuery, schemaQuery } from "../../api/queries.ts";
import { Page } from "../../design/page.tsx";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { type ObjectNode, readSchema } from "../../forms/schema.ts";
import { withoutDefaults } from "../../forms/values.ts";
import { type Draft, EMPTY_DRAFT, labelsText, loadDraft } from "./draft.ts";
import { gatesDraft } from "./gates.ts";
import { LaunchForm } from "./launch-form.tsx";

type Example = Schemas["ConfigExample"];

/** The launch form, empty, from an example or from another run. */
export function LaunchPage() {
  const [params] = useSearchParams();
  const cloneId = params.get("clone");
  const schema = useQuery(schemaQuery);
  const examples = useQuery(examplesQuery);
  const origin = useQuery({ ...runQuery(cloneId ?? ""), enabled: cloneId !== null });
  const root = useMemo(() => schema.data && readSchema(schema.data), [schema.data]);
  const error = schema.error ?? examples.error ?? (cloneId ? origin.error : null);
  const isReady = root && examples.data && (!cloneId || origin.data);
  return (
    <Page title={origin.data ? `Clone ${origin.data.name}` : "Launch a run"}>
      {error && <ProblemNote error={error} onRetry={() => schema.refetch()} />}
      {!error && !isReady && <Waiting>Fetching the settings of a run.</Waiting>}
      {isReady && (
        <Prepared root={root} examples={examples.data} origin={origin.data ?? null} params={params} />
      )}
    </Page>
  );
}

interface PreparedProps {
  root: ObjectNode;
  examples: Example[];
  origin: RunRead | null;
  params: URLSearchParams;
}

function Prepared({ root, examples, origin, params }: PreparedProps) {
  const asked = origin ? null : params.get("example");
  const example = examples.find(({ name }) => name === asked) ?? null;
  const source = origin ? `clone ${origin.id}` : example ? `example ${example.name}` : "new";
  const initial = loadDraft(source) ?? draftOf(root, example, origin);
  return (
    <>
      {asked && !example && (
        <p className="note tone-lost" role="alert">
          There is no example {asked}. Choose another, or begin without one.
        </p>
      )}
      <LaunchForm
        key={source}
        source={source}
        root={root}
        initial={initial}
        examples={examples}
        example={example}
        clonedFromId={origin?.id ?? null}
      />
    </>
  );
}

function draftOf(root: ObjectNode, example: Example | null, origin: RunRead | null): Draft {
  if (origin) return draftOfRun(root, origin);
  if (!example) return EMPTY_DRAFT;
  return {
    ...EMPTY_DRAFT,
    name: example.title,
    form: { values: withoutDefaults(root, example.config), memory: {} },
  };
}

function draftOfRun(root: ObjectNode, run: RunRead): Draft {
  return {
    name: `${run.name} (clone)`.slice(0, 120),
    project: run.project,
    cluster: run.cluster,
    labels: labelsText(run.labels),
    notes: run.notes,
    maxAttempts: run.max_attempts === 3 ? undefined : run.max_attempts,
    // As the server has it: a clone does not take the place in the queue that the other run was given.
    priority: undefined,
    gates: gatesDraft(run.gates),
    form: { values: withoutDefaults(root, run.config), memory: {} },
  };
}
