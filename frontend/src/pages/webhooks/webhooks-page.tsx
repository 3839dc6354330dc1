import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiProblem } from "../../api/problem.ts";
import { webhooksQuery } from "../../api/queries.ts";
import { Page } from "../../design/page.tsx";
import { Empty, ProblemNote, Waiting } from "../../design/states.tsx";
import { NewWebhook } from "./new-webhook.tsx";
import { WebhookCard } from "./webhook-card.tsx";

const POLL_INTERVAL_MS = 5_000;

/** The webhooks of the projects that the reader administers. */
export function WebhooksPage() {
  const [isMaking, setMaking] = useState(false);
  const webhooks = useQuery({ ...webhooksQuery, refetchInterval: POLL_INTERVAL_MS });
  const isRefused = webhooks.error instanceof ApiProblem && webhooks.error.status === 403;
  const actions = (
    <button
      type="button"
      className="button button-primary"
      onClick={() => setMaking(true)}
      disabled={isMaking}
    >
      New webhook
    </button>
  );
  return (
    <Page title="Webhooks" actions={isRefused ? undefined : actions}>
      {isMaking && <NewWebhook onClose={() => setMaking(false)} />}
      {webhooks.isPending && <Waiting>Fetching the webhooks.</Waiting>}
      {webhooks.error && <ProblemNote error={webhooks.error} onRetry={() => webhooks.refetch()} />}
      {webhooks.data?.length === 0 && !isMaking && (
        <Empty title="No webhook yet.">
          <p>
            A webhook tells another service when a run ends, an alarm is raised or a gate fails. They are for
            those who administer a project.
          </p>
        </Empty>
      )}
      <ul className="cards">
        {webhooks.data?.map((webhook) => (
          <WebhookCard key={webhook.id} webhook={webhook} />
        ))}
      </ul>
    </Page>
  );
}
