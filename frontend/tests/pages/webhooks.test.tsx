// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import type { Middleware } from "openapi-fetch";
import type { ReactNode } from "react";
import { afterEach, expect, test, vi } from "vitest";
import document from "../../openapi.json";
import { api, type Schemas } from "../../src/api/client.ts";
import { outcomeOf } from "../../src/pages/webhooks/deliveries.tsx";
import { EVENT_TYPES } from "../../src/pages/webhooks/event-types.ts";
import { NewWebhook } from "../../src/pages/webhooks/new-webhook.tsx";
import { stateOf, WebhookCard } from "../../src/pages/webhooks/webhook-card.tsx";

afterEach(() => {
  cleanup();
  for (const server of servers.splice(0)) api.eject(server);
});

const servers: Middleware[] = [];
const time = "2030-01-31T12:00:00Z";
const webhook: Schemas["WebhookRead"] = {
  id: "w1",
  project: "default",
  name: "<b>bot</b>",
  url: "https://ci.example.org/in",
  events: ["run.failed"],
  is_enabled: true,
  disabled_reason: null,
  failing_since: null,
  num_pending: 0,
  previous_secret_expires_at: null,
  created_at: time,
  updated_at: time,
};
const attempt = { started_at: time, duration_ms: 84, status: 204, answer: "", error: null };
const delivery: Schemas["DeliveryRead"] = {
  id: "d1",
  message_id: "msg_d1",
  type: "run.failed",
  state: "succeeded",
  created_at: time,
  ended_at: time,
  next_attempt_at: null,
  num_attempts: 1,
  last_attempt: attempt,
};

function show(element: ReactNode) {
  return render(<QueryClientProvider client={new QueryClient()}>{element}</QueryClientProvider>);
}

/** A server that gives these answers by method and path; returns what it was asked. */
function serve(answers: Record<string, { status: number; body: unknown }>): string[] {
  const asked: string[] = [];
  const server: Middleware = {
    onRequest({ request }) {
      const what = `${request.method} ${new URL(request.url).pathname}`;
      asked.push(what);
      const { status, body } = answers[what] ?? { status: 404, body: {} };
      return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
    },
  };
  servers.push(server);
  api.use(server);
  return asked;
}

test("its state is told in a word", () => {
  expect(stateOf(webhook).word).toBe("Enabled");
  expect(stateOf({ ...webhook, failing_since: time }).word).toBe("Failing");
  expect(stateOf({ ...webhook, failing_since: time, is_enabled: false }).word).toBe("Disabled");
});

test("the last attempt is told in words", () => {
  expect(outcomeOf(delivery)).toBe("Answered 204 after 84 ms");
  const failed = { ...attempt, status: 500, error: "answered 500", answer: "oops", duration_ms: 2_000 };
  expect(outcomeOf({ ...delivery, num_attempts: 3, last_attempt: failed })).toBe(
    "Answered 500 after 2.0 s, try 3: oops",
  );
  expect(outcomeOf({ ...delivery, num_attempts: 0, last_attempt: null })).toBe("Not sent yet");
});

test("the page offers the events that the server knows", () => {
  const events = document.components.schemas.WebhookCreate.properties.events;
  expect(EVENT_TYPES.map(({ type }) => type)).toEqual(events.items.enum);
});

test("a new webhook's secret is shown once, until the reader is done", async () => {
  const created = { ...webhook, secret: "whsec_abc" };
  serve({ "POST /api/v1/webhooks": { status: 201, body: created } });
  const close = vi.fn();
  show(<NewWebhook onClose={close} />);
  fireEvent.click(screen.getByText("Make the webhook"));
  await waitFor(() => expect(screen.getByText("whsec_abc")).toBeTruthy());
  fireEvent.click(screen.getByText("Done"));
  expect(close).toHaveBeenCalledOnce();
});

test("what is wrong with the address stands under it", async () => {
  const body = { detail: "x", errors: [{ pointer: "/url", detail: "127.0.0.1 is loopback" }] };
  serve({ "POST /api/v1/webhooks": { status: 422, body } });
  const { container } = show(<NewWebhook onClose={() => {}} />);
  fireEvent.click(screen.getByText("Make the webhook"));
  await waitFor(() =>
    expect(container.querySelector("#webhook-url-problems")?.textContent).toBe("127.0.0.1 is loopback."),
  );
});

test("a ping opens the deliveries, and one can be sent again", async () => {
  const asked = serve({
    "POST /api/v1/webhooks/w1/ping": { status: 202, body: delivery },
    "GET /api/v1/webhooks/w1/deliveries": { status: 200, body: { items: [delivery], next_cursor: null } },
    "POST /api/v1/webhooks/w1/deliveries/d1/redeliver": { status: 202, body: delivery },
  });
  const { container } = show(<WebhookCard webhook={webhook} />);
  expect(container.querySelector("h2")?.textContent).toBe("<b>bot</b>");
  fireEvent.click(screen.getByText("Ping"));
  await waitFor(() => expect(screen.getByText("Delivered")).toBeTruthy());
  fireEvent.click(screen.getByText("Send again"));
  await waitFor(() => expect(asked).toContain("POST /api/v1/webhooks/w1/deliveries/d1/redeliver"));
});

test("a disabled webhook cannot be pinged, and says why it is disabled", () => {
  const reason = "The receiver answered 410: it wants no more.";
  show(<WebhookCard webhook={{ ...webhook, is_enabled: false, disabled_reason: reason }} />);
  expect((screen.getByText("Ping") as HTMLButtonElement).disabled).toBe(true);
  expect(screen.getByText(reason)).toBeTruthy();
  expect(screen.getByText("Enable")).toBeTruthy();
});
