import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StreamOptions, StreamState } from "../../src/stream/connection.ts";
import type { RunEvent } from "../../src/stream/events.ts";
import { ALL_RUNS, StreamHub } from "../../src/stream/hub.ts";

class Connection {
  lastEventId: string | null;
  isClosed = false;

  constructor(readonly options: StreamOptions) {
    this.lastEventId = options.lastEventId ?? null;
  }

  close(): void {
    this.isClosed = true;
  }

  send(event: string, body: object): void {
    this.options.onEvent({ event, data: JSON.stringify(body), id: null });
  }

  become(state: StreamState): void {
    this.options.onState(state);
  }
}

let connections: Connection[];
let hub: StreamHub;
let seen: RunEvent[];

beforeEach(() => {
  vi.useFakeTimers();
  [connections, seen] = [[], []];
  hub = new StreamHub((options) => {
    const connection = new Connection(options);
    connections.push(connection);
    return connection;
  });
});
afterEach(() => vi.useRealTimers());

const settle = (milliseconds = 0) => vi.advanceTimersByTimeAsync(milliseconds);
const record = (event: RunEvent) => seen.push(event);

test("many followers share one connection that names every run once", async () => {
  hub.follow("r2", record);
  hub.follow("r1", record);
  hub.follow("r1", record);
  await settle();
  expect(connections.map(({ options }) => options.url)).toEqual(["/api/v1/stream?runs=r1,r2"]);
});

test("an event goes to the run's followers and to those of all runs", async () => {
  const others: RunEvent[] = [];
  hub.follow("r1", record);
  hub.follow("r2", (event) => others.push(event));
  hub.follow(ALL_RUNS, record);
  await settle();
  expect(connections[0]?.options.url).toContain("runs=all");
  connections[0]?.send("series", { run_id: "r1", names: ["a"], step: 9, from_step: 7 });
  expect(seen).toEqual(Array(2).fill({ kind: "series", runId: "r1", names: ["a"], fromStep: 7 }));
  expect(others).toEqual([]);
});

test("another page keeps the place in the stream", async () => {
  const leave = hub.follow("r1", record);
  await settle();
  (connections[0] as Connection).lastEventId = "41";
  leave();
  hub.follow("r2", record);
  await settle();
  expect(connections[0]?.isClosed).toBe(true);
  expect(connections[1]?.options.lastEventId).toBe("41");
});

test("a page that comes again at once changes nothing", async () => {
  hub.follow("r1", record)();
  hub.follow("r1", record);
  await settle();
  expect(connections).toHaveLength(1);
});

test("once live, everything is looked at again, since nothing was announced before", async () => {
  hub.follow("r1", record);
  await settle();
  connections[0]?.send("open", {});
  expect(seen).toEqual([{ kind: "resync" }]);
});

test("while the stream is down, everything is asked for every two seconds, and no longer", async () => {
  hub.follow("r1", record);
  await settle();
  connections[0]?.become("down");
  expect(hub.getState()).toBe("down");
  await settle(6_000);
  expect(seen).toHaveLength(3);
  connections[0]?.become("open");
  await settle(6_000);
  expect(seen).toHaveLength(3);
});

test("an event of a kind from the future is passed over", async () => {
  hub.follow("r1", record);
  await settle();
  connections[0]?.send("weather", { run_id: "r1" });
  expect(seen).toEqual([]);
});
