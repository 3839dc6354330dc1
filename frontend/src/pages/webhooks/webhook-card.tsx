import { type UseMutationResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { webhooksQuery } from "../../api/queries.ts";
import { Confirm } from "../../design/confirm.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { EditProblem } from "../../edits/conflict-note.tsx";
import { saveEdit } from "../../edits/editable.ts";
import { editableWebhook } from "../../edits/kinds.ts";
import { plural } from "../../format/number.ts";
import { Deliveries } from "./deliveries.tsx";
import { SecretNote } from "./secret-note.tsx";

type Webhook = Schemas["WebhookRead"];

/** The state of a webhook in a word and a tone. */
export function stateOf(webhook: Webhook): { word: string; tone: string } {
  if (!webhook.is_enabled) return { word: "Disabled", tone: "stopped" };
  return webhook.failing_since ? { word: "Failing", tone: "failed" } : { word: "Enabled", tone: "succeeded" };
}

export function WebhookCard({ webhook }: { webhook: Webhook }) {
  const [asking, setAsking] = useState<"delete" | "rotate" | null>(null);
  const [isOpen, setOpen] = useState(false);
  const { ping, enable, rotate, remove } = useChanges(webhook);
  const state = stateOf(webhook);
  const error = ping.error ?? enable.error ?? rotate.error ?? remove.error;
  const confirm = (change: UseMutationResult<unknown, Error, void>) => () => {
    setAsking(null);
    change.mutate();
  };
  return (
    <li className="card webhook" aria-label={`Webhook ${webhook.name}`}>
      <div className="card-head">
        <h2>{webhook.name}</h2>
        <span className={`badge tone-${state.tone}`}>{state.word}</span>
      </div>
      {webhook.disabled_reason && <p className="muted">{webhook.disabled_reason}</p>}
      <Facts webhook={webhook} />
      <div className="actions">
        <button
          type="button"
          className="button"
          disabled={!webhook.is_enabled || ping.isPending}
          onClick={() => ping.mutate(undefined, { onSuccess: () => setOpen(true) })}
        >
          Ping
        </button>
        <button type="button" className="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </button>
        <button type="button" className="button" disabled={enable.isPending} onClick={() => enable.mutate()}>
          {webhook.is_enabled ? "Disable" : "Enable"}
        </button>
        <button type="button" className="button" onClick={() => setAsking("rotate")}>
          Rotate the secret
        </button>
        <button type="button" className="button" onClick={() => setAsking("delete")}>
          Delete
        </button>
      </div>
      {error && <EditProblem error={error} />}
      {rotate.data && <SecretNote name={webhook.name} secret={rotate.data.secret} onClose={rotate.reset} />}
      {isOpen && <Deliveries webhook={webhook} />}
      {asking === "delete" && (
        <Confirm
          title={`Delete “${webhook.name}”?`}
          action="Delete"
          onConfirm={confirm(remove)}
          onCancel={() => setAsking(null)}
        >
          <p>Its receiver is told nothing more, and its delivery log goes with it.</p>
        </Confirm>
      )}
      {asking === "rotate" && (
        <Confirm
          title={`Give “${webhook.name}” a new secret?`}
          action="Rotate"
          onConfirm={confirm(rotate)}
          onCancel={() => setAsking(null)}
        >
          <p>For a day, deliveries are signed with both the new secret and the present one.</p>
        </Confirm>
      )}
    </li>
  );
}

function Facts({ webhook }: { webhook: Webhook }) {
  return (
    <dl className="facts">
      <dt>Address</dt>
      <dd className="mono">{webhook.url}</dd>
      <dt>Project</dt>
      <dd>{webhook.project}</dd>
      <dt>Events</dt>
      <dd className="mono">{webhook.events.join(", ")}</dd>
      {webhook.failing_since && (
        <div className="fact">
          <dt>Failing</dt>
          <dd>
            since <RelativeTime time={webhook.failing_since} />
          </dd>
        </div>
      )}
      {webhook.num_pending > 0 && (
        <div className="fact">
          <dt>Waiting</dt>
          <dd>{plural(webhook.num_pending, "delivery").replace("deliverys", "deliveries")}</dd>
        </div>
      )}
      {webhook.previous_secret_expires_at && (
        <div className="fact">
          <dt>Former secret</dt>
          <dd>
            expires <RelativeTime time={webhook.previous_secret_expires_at} />
          </dd>
        </div>
      )}
    </dl>
  );
}

function useChanges(webhook: Webhook) {
  const { id, is_enabled } = webhook;
  const queryClient = useQueryClient();
  const onSuccess = () => queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey });
  const params = { params: { path: { webhook_id: id } } };
  return {
    ping: useMutation({
      mutationFn: () => unwrap(api.POST("/api/v1/webhooks/{webhook_id}/ping", params)),
      onSuccess,
    }),
    enable: useMutation({
      mutationFn: () => saveEdit(editableWebhook(id), webhook, { is_enabled: !is_enabled }),
      onSettled: onSuccess,
    }),
    rotate: useMutation({
      mutationFn: () =>
        unwrap(
          api.POST("/api/v1/webhooks/{webhook_id}/rotate-secret", { ...params, body: { overlap_s: 86_400 } }),
        ),
      onSuccess,
    }),
    remove: useMutation({
      mutationFn: () => unwrap(api.DELETE("/api/v1/webhooks/{webhook_id}", params)),
      onSuccess,
    }),
  };
}
