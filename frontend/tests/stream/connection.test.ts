import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StreamConnection, type StreamState } from "../../src/stream/connection.ts";
import type { ServerEvent } from "../../src/stream/sse.ts";

/** One request that the test answers piece by piece. */
class Call {
  readonly stream: ReadableStream<Uint8Array>;
  private controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor(readonly headers: Record<string, string>) {
    this.stream = new ReadableStream({
      start: (controller) => {
        this.controller = controller;
      },
    });
  }

  send(text: string): void {
    this.controller.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.controller.close();
  }

  abort(): void {
    this.controller.error(new DOMException("aborted", "AbortError"));
  }
}

let calls: Call[];
let events: ServerEvent[];
let states: StreamState[];
let status: number;
let connection: StreamConnection;

const answer = async (_: unknown, init?: RequestInit) => {
  const call = new Call(init?.headers as Record<string, string>);
  calls.push(call);
  init?.signal?.addEventListener("abort", () => call.abort());
  return new Response(status === 200 ? call.stream : null, { status });
};

beforeEach(() => {
  vi.useFakeTimers();
  [calls, events, states, status] = [[], [], [], 200];
});
afterEach(() => {
  connection.close();
  vi.useRealTimers();
});

function connect(): void {
  connection = new StreamConnection({
    url: "/stream",
    onEvent: (event) => events.push(event),
    onState: (state) => states.push(state),
    fetch: answer as typeof fetch,
  });
}

const settle = (milliseconds = 0) => vi.advanceTimersByTimeAsync(milliseconds);

test("hands on events as they come", async () => {
  connect();
  await settle();
  calls[0]?.send("id: 4\ndata: x\n\n");
  await settle();
  expect(events).toEqual([{ event: "message", data: "x", id: "4" }]);
  expect(states).toEqual(["connecting", "open"]);
});

test("after a break it says so, and resumes with the id of the last event", async () => {
  connect();
  await settle();
  calls[0]?.send("id: 4\ndata: x\n\n");
  await settle();
  calls[0]?.end();
  await settle();
  expect(states.at(-1)).toBe("down");
  await settle(500);
  expect(calls[1]?.headers["Last-Event-ID"]).toBe("4");
  expect(states.at(-1)).toBe("open");
});

test("an error status is tried again, ever more slowly", async () => {
  status = 503;
  connect();
  await settle(500 + 1000 + 2000 + 4000 - 1);
  expect(calls).toHaveLength(4);
  expect(states.filter((state) => state === "open")).toEqual([]);
  status = 200;
  await settle(1);
  expect(states.at(-1)).toBe("open");
});

test("a connection that has gone silent is given up; keep-alives prevent it", async () => {
  connect();
  await settle();
  for (let i = 0; i < 5; i++) {
    await settle(15_000);
    calls[0]?.send(": keep-alive\n\n");
  }
  await settle();
  expect(calls).toHaveLength(1);
  await settle(41_000);
  expect(states).toContain("down");
  expect(calls.length).toBeGreaterThan(1);
});

test("closed is closed", async () => {
  connect();
  await settle();
  connection.close();
  await settle(60_000);
  expect(calls).toHaveLength(1);
});
