import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "../../api/client.ts";
import { deliveriesQuery, webhooksQuery } from "../../api/queries.ts";
import { ProblemNote, Waiting } from "../../design/states.tsx";
import { RelativeTime } from "../../design/time.tsx";
import { formatDuration } from "../../format/time.ts";

type Delivery = Schemas["DeliveryRead"];

const POLL_INTERVAL_MS = 3_000;
const STATES: Record<Delivery["state"], { word: string; tone: string }> = {
  pending: { word: "Pending", tone: "running" },
  succeeded: { word: "Delivered", tone: "succeeded" },
  failed: { word: "Given up", tone: "failed" },
};

/** What was sent to a webhook, newest first. */
export function Deliveries({ webhook }: { webhook: Schemas["WebhookRead"] }) {
  const deliveries = useInfiniteQuery({ ...deliveriesQuery(webhook.id), refetchInterval: POLL_INTERVAL_MS });
  const items = deliveries.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="deliveries">
      {deliveries.isPending && <Waiting>Fetching the deliveries.</Waiting>}
      {deliveries.error && <ProblemNote error={deliveries.error} onRetry={() => deliveries.refetch()} />}
      {deliveries.data && items.length === 0 && (
        <p className="muted">Nothing was sent yet. Ping it to see whether it answers.</p>
      )}
      <ul>
        {items.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} webhook={webhook} />
        ))}
      </ul>
      {deliveries.hasNextPage && (
        <button type="button" className="button" onClick={() => deliveries.fetchNextPage()}>
          Show older ones
        </button>
      )}
    </div>
  );
}

function DeliveryRow({ delivery, webhook }: { delivery: Delivery; webhook: Schemas["WebhookRead"] }) {
  const queryClient = useQueryClient();
  const redeliver = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", {
          params: { path: { webhook_id: webhook.id, delivery_id: delivery.id } },
        }),
      ),
    onSuccess: () => {
      void queryClient.invalidateQueries({ queryKey: deliveriesQuery(webhook.id).queryKey });
      void queryClient.invalidateQueries({ queryKey: webhooksQuery.queryKey });
    },
  });
  const state = STATES[delivery.state];
  return (
    <li>
      <span className={`badge tone-${state.tone}`}>{state.word}</span>
      <div className="delivery-words">
        <p>
          <span className="mono">{delivery.type}</span>{" "}
          <span className="muted">
            <RelativeTime time={delivery.created_at} />
          </span>
        </p>
        <p className="muted small">{outcomeOf(delivery)}</p>
        {delivery.state === "pending" && delivery.next_attempt_at && delivery.num_attempts > 0 && (
          <p className="muted small">
            Next try <RelativeTime time={delivery.next_attempt_at} />
          </p>
        )}
        {redeliver.error && <ProblemNote error={redeliver.error} />}
      </div>
      <button
        type="button"
        className="button"
        disabled={redeliver.isPending || !webhook.is_enabled}
        onClick={() => redeliver.mutate()}
        aria-label={`Send ${delivery.type} again`}
      >
        Send again
      </button>
    </li>
  );
}

/** The last attempt in words. */
export function outcomeOf({ last_attempt, num_attempts }: Delivery): string {
  if (!last_attempt) return "Not sent yet";
  const what = last_attempt.error ?? `answered ${last_attempt.status}`;
  const answer = last_attempt.answer ? `: ${last_attempt.answer}` : "";
  const tries = num_attempts > 1 ? `, try ${num_attempts}` : "";
  return `${what.charAt(0).toUpperCase()}${what.slice(1)} after ${formatDuration(last_attempt.duration_ms / 1000)}${tries}${answer}`;
}
