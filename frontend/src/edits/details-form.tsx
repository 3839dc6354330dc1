import { type FormEvent, useEffect, useRef, useState } from "react";
import { FieldRow, NumberInput } from "../forms/field.tsx";
import { labelsText, parseLabels } from "../pages/launch/draft.ts";
import { EditFooter } from "./edit-footer.tsx";
import type { Editable } from "./editable.ts";
import { useEdit } from "./use-edit.ts";
import "./edits.css";

/** What runs and sweeps have in common of what can be edited. */
interface Details {
  name: string;
  labels: Record<string, string>;
  notes: string;
  priority?: number;
}

interface DetailsBody {
  name?: string | null;
  labels?: Record<string, string> | null;
  notes?: string | null;
  priority?: number | null;
}

interface DetailsFormProps<T extends Details, Body extends object> {
  /** What is edited: "run". */
  noun: string;
  editable: Editable<T, Body>;
  seen: T;
  hasPriority?: boolean;
  /** With what is there now, saved or found. */
  onChanged: (current: T) => void;
  onClose: () => void;
}

interface Typed {
  name?: string;
  labels?: string;
  notes?: string;
  priority?: unknown;
}

/** Name, labels and notes; the priority of what waits. */
export function DetailsForm<T extends Details, Body extends object>(props: DetailsFormProps<T, Body>) {
  const { noun, editable, seen, hasPriority = false, onChanged, onClose } = props;
  const edit = useEdit(editable, seen, onChanged, onClose);
  const { base, save, refused } = edit;
  const [typed, setTyped] = useState<Typed>({});
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  // What waited may have begun meanwhile, and has no priority any more.
  const body = changed(base, hasPriority ? typed : withoutPriority(typed));
  const set = (changes: Typed) => setTyped({ ...typed, ...changes });
  const at = (field: string) =>
    refused.filter(({ pointer }) => pointer.split("/")[1] === field).map(({ detail }) => detail);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (Object.keys(body).length === 0) onClose();
    else save.mutate(body as Body);
  };
  const described = (field: string) => ({
    id: `edit-${field}`,
    "aria-invalid": at(field).length > 0,
    "aria-describedby": `edit-${field}-help edit-${field}-problems`,
  });
  return (
    <form className="card edit-form" onSubmit={submit} noValidate aria-label={`Edit the ${noun}`}>
      <FieldRow id="edit-name" label="Name" help="" messages={at("name")}>
        <input
          {...described("name")}
          ref={first}
          className="input wide"
          value={typed.name ?? base.name}
          maxLength={120}
          onChange={(event) => set({ name: event.target.value })}
        />
      </FieldRow>
      <FieldRow
        id="edit-labels"
        label="Labels"
        help="key: value, separated by commas."
        messages={at("labels")}
      >
        <input
          {...described("labels")}
          className="input wide"
          value={typed.labels ?? labelsText(base.labels)}
          placeholder="team: post-training"
          onChange={(event) => set({ labels: event.target.value })}
        />
      </FieldRow>
      <FieldRow id="edit-notes" label="Notes" help="" messages={at("notes")}>
        <textarea
          {...described("notes")}
          className="input wide"
          rows={4}
          value={typed.notes ?? base.notes}
          onChange={(event) => set({ notes: event.target.value })}
        />
      </FieldRow>
      {hasPriority && (
        <FieldRow
          id="edit-priority"
          label="Priority"
          help="In the queue of its cluster, −100 to 100: each level is worth ten minutes of waiting."
          messages={at("priority")}
        >
          <NumberInput
            {...described("priority")}
            value={"priority" in typed ? typed.priority : base.priority}
            placeholder="0"
            onChange={(priority) => set({ priority })}
          />
        </FieldRow>
      )}
      <EditFooter edit={edit} own={Object.keys(body)} onDrop={() => setTyped({})} onClose={onClose} />
    </form>
  );
}

function withoutPriority({ priority, ...others }: Typed): Typed {
  return others;
}

/** What was typed and differs from what is there. Text that is no number goes as it is: the server says what is wrong. */
function changed(base: Details, typed: Typed): DetailsBody {
  const body: DetailsBody = {};
  if (typed.name !== undefined && typed.name !== base.name) body.name = typed.name;
  if (typed.labels !== undefined && typed.labels !== labelsText(base.labels))
    body.labels = parseLabels(typed.labels);
  if (typed.notes !== undefined && typed.notes !== base.notes) body.notes = typed.notes;
  if ("priority" in typed && (typed.priority ?? 0) !== base.priority)
    body.priority = (typed.priority ?? 0) as number;
  return body;
}
