import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { runQuery, runsKey } from "../../api/queries.ts";
import { ProblemNote } from "../../design/states.tsx";
import { countProblems, type Problems, placeProblems } from "../../forms/problems.ts";
import type { ObjectNode } from "../../forms/schema.ts";
import { SchemaForm } from "../../forms/schema-form.tsx";
import { withKinds } from "../../forms/values.ts";
import { type Draft, forgetDraft, parseLabels, saveDraft } from "./draft.ts";
import { Examples } from "./examples.tsx";
import { gatesOf } from "./gates.ts";
import { LaunchBar } from "./launch-bar.tsx";
import { MemoryCard } from "./memory-card.tsx";
import { RunFields } from "./run-fields.tsx";
import { useValidation } from "./use-validation.ts";

interface LaunchFormProps {
  source: string;
  root: ObjectNode;
  initial: Draft;
  examples: Schemas["ConfigExample"][];
  example: Schemas["ConfigExample"] | null;
  clonedFromId: string | null;
}

export function LaunchForm({ source, root, initial, examples, example, clonedFromId }: LaunchFormProps) {
  const [draft, setDraft] = useState(initial);
  const form = useRef<HTMLFormElement>(null);
  const config = withKinds(root, draft.form.values);
  const validation = useValidation(root, config);
  const launch = useLaunch(source);
  const refused = refusedFields(root, launch.error);
  const problems = { ...refused, ...validation.problems };
  const change = (changes: Partial<Draft>) => {
    const next = { ...draft, ...changes };
    setDraft(next);
    saveDraft(source, next);
    if (launch.error) launch.reset();
  };

  const memoryCard = (
    <MemoryCard memory={validation.memory} isOutdated={Object.keys(validation.problems).length > 0} />
  );

  useEffect(() => {
    if (launch.error) focusFirstProblem(form.current);
  }, [launch.error]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    launch.mutate(requestOf(draft, config, clonedFromId));
  };
  return (
    <form className="launch" ref={form} onSubmit={submit} noValidate>
      {!clonedFromId && <Examples examples={examples} chosen={example} />}
      <RunFields draft={draft} problems={problems} onChange={change} />
      <SchemaForm
        root={root}
        state={draft.form}
        problems={problems}
        onChange={(state) => change({ form: state })}
        asides={{ resources: validation.resolved !== null && memoryCard }}
      />
      {launch.error && Object.keys(refused).length === 0 && <ProblemNote error={launch.error} />}
      <LaunchBar
        resolved={validation.resolved}
        memory={validation.memory}
        cluster={draft.cluster}
        numProblems={countProblems(problems)}
        isLaunching={launch.isPending}
        onShowProblems={() => focusFirstProblem(form.current)}
      />
    </form>
  );
}

function requestOf(
  draft: Draft,
  config: Record<string, unknown>,
  clonedFromId: string | null,
): Schemas["RunCreate"] {
  return {
    name: draft.name,
    ...(draft.project ? { project: draft.project } : {}),
    cluster: draft.cluster,
    labels: parseLabels(draft.labels),
    notes: draft.notes,
    gates: gatesOf(draft.gates),
    config: config as Schemas["RunCreate"]["config"],
    // Text that is no number goes as it is: the server says what is wrong with it.
    ...(draft.maxAttempts === undefined ? {} : { max_attempts: draft.maxAttempts as number }),
    ...(draft.priority === undefined ? {} : { priority: draft.priority as number }),
    ...(clonedFromId ? { cloned_from_id: clonedFromId } : {}),
  };
}

function useLaunch(source: string) {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["RunCreate"]) => unwrap(api.POST("/api/v1/runs", { body })),
    onSuccess: (run) => {
      forgetDraft(source);
      queryClient.setQueryData(runQuery(run.id).queryKey, run);
      void queryClient.invalidateQueries({ queryKey: runsKey });
      void navigate(`/runs/${run.id}`);
    },
  });
}

function refusedFields(root: ObjectNode, error: unknown): Problems {
  return error instanceof ApiProblem && error.status === 422
    ? placeProblems(root, error.errors, "/config")
    : {};
}

/** Unfolds what hides the first field that is wrong, and puts the cursor there. */
function focusFirstProblem(form: HTMLFormElement | null): void {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  for (let fold = field?.closest("details"); fold; fold = fold.parentElement?.closest("details"))
    fold.open = true;
  field?.focus();
  field?.scrollIntoView({ block: "center" });
}
