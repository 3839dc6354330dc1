import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, unwrap } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { webhooksQuery } from "../../api/queries.ts";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { FieldRow } from "../../forms/field.tsx";
import { EVENT_TYPES, type EventType, USUAL } from "./event-types.ts";
import { SecretNote } from "./secret-note.tsx";

/** A form; once the webhook is made, its secret, which is shown this once. */
export function NewWebhook({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [project, setProject] = useState("");
  const [events, setEvents] = useState<EventType[]>(USUAL);
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: () =>
      unwrap(api.POST("/api/v1/webhooks", { body: { name, url, events, project: project || null } })),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey }),
  });
  if (create.data)
    return <SecretNote name={create.data.name} secret={create.data.secret} onClose={onClose} />;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const refused = create.error instanceof ApiProblem ? create.error.errors : [];
  const about = (field: string) =>
    refused.filter(({ pointer }) => pointer.split("/")[1] === field).map(({ detail }) => detail);
  const toggle = (type: EventType) =>
    setEvents(events.includes(type) ? events.filter((each) => each !== type) : [...events, type]);
  return (
    <form className="card webhook-form" onSubmit={submit} noValidate aria-label="New webhook">
      <Text
        id="webhook-name"
        label="Name"
        placeholder="deploy bot"
        value={name}
        set={setName}
        messages={about("name")}
      />
      <Text
        id="webhook-url"
        label="Address"
        help="Where events go: https, at a public address."
        placeholder="https://ci.example.org/foredeck"
        value={url}
        set={setUrl}
        messages={about("url")}
      />
      <Text
        id="webhook-project"
        label="Project"
        help="Left empty, it is the default one, or the only one that you administer."
        placeholder="default"
        value={project}
        set={setProject}
        messages={about("project")}
      />
      <fieldset className="webhook-events">
        <legend>Events</legend>
        {EVENT_TYPES.map(({ type, words }) => (
          <label key={type}>
            <input type="checkbox" checked={events.includes(type)} onChange={() => toggle(type)} />
            <span>
              <span className="mono">{type}</span> <span className="muted">{words}</span>
            </span>
          </label>
        ))}
        <div className="field-problems" aria-live="polite">
          {about("events").map((message) => (
            <p key={message}>Choose at least one event: the list {message}.</p>
          ))}
        </div>
      </fieldset>
      {create.isPending && <Waiting>Checking the address.</Waiting>}
      {create.error && refused.length === 0 && <ProblemNote error={create.error} />}
      <div className="actions">
        <button type="submit" className="button button-primary" disabled={create.isPending}>
          Make the webhook
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

interface TextProps {
  id: string;
  label: string;
  help?: string;
  placeholder: string;
  value: string;
  set: (value: string) => void;
  messages: string[];
}

function Text({ id, label, help = "", placeholder, value, set, messages }: TextProps) {
  return (
    <FieldRow id={id} label={label} help={help} messages={messages}>
      <input
        id={id}
        className="input wide"
        value={value}
        placeholder={placeholder}
        spellCheck={false}
        autoCapitalize="off"
        aria-invalid={messages.length > 0}
        aria-describedby={`${id}-help ${id}-problems`}
        onChange={(event) => set(event.target.value)}
      />
    </FieldRow>
  );
}
