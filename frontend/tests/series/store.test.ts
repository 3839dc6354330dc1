import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Columns, EMPTY_COLUMNS } from "../../src/series/columns.ts";
import { type FetchedColumns, SeriesStore } from "../../src/series/store.ts";

/** A server in memory that remembers what it was asked. */
class Server {
  readonly asked: { names: string[]; fromStep: number | null }[] = [];
  readonly steps = new Map<string, number[]>();
  bucketWidth = 1;
  failures = 0;
  delayMs = 0;

  fetchColumns = async (names: string[], fromStep: number | null): Promise<FetchedColumns[]> => {
    this.asked.push({ names, fromStep });
    if (this.failures > 0) {
      this.failures -= 1;
      throw new Error("no answer");
    }
    const known = names.filter((name) => this.steps.has(name));
    const answer = known.map((name) => ({ name, columns: this.columns(name, fromStep ?? 0) }));
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    return answer;
  };

  fetchIndex = async () =>
    [...this.steps].map(([name, steps]) => ({ name, lastStep: steps.at(-1) ?? 0, numPoints: steps.length }));

  private columns(name: string, from: number): Columns {
    const step = (this.steps.get(name) ?? []).filter((s) => s >= from);
    return { ...EMPTY_COLUMNS, step, value: step.map((s) => s / 2), bucketWidth: this.bucketWidth };
  }
}

let server: Server;
let store: SeriesStore;

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  server.steps.set("a", [1, 2, 3]).set("b", [1, 2, 3]);
  store = new SeriesStore(server);
});
afterEach(() => vi.useRealTimers());

const settle = (milliseconds = 0) => vi.advanceTimersByTimeAsync(milliseconds);

test("what several charts want comes in one request", async () => {
  store.want(["a"]);
  store.want(["a", "b"]);
  await settle();
  expect(server.asked).toEqual([{ names: ["a", "b"], fromStep: null }]);
  expect(store.get("b")?.step).toEqual([1, 2, 3]);
});

test("an advance brings the tail of the names that are shown, and no others", async () => {
  store.want(["a"]);
  await settle();
  server.steps.set("a", [1, 2, 3, 4]);
  store.markAdvanced(["a", "b"], 4);
  await settle(250);
  expect(server.asked.at(-1)).toEqual({ names: ["a"], fromStep: 4 });
  expect(store.get("a")?.step).toEqual([1, 2, 3, 4]);
});

test("a hundred advances in a second cost at most five requests, and the last point is there", async () => {
  store.want(["a"]);
  await settle();
  for (let step = 4; step < 104; step++) {
    server.steps.get("a")?.push(step);
    store.markAdvanced(["a"], step);
    await settle(10);
  }
  await settle(250);
  expect(server.asked.length).toBeLessThanOrEqual(1 + 5);
  expect(store.get("a")?.step.at(-1)).toBe(103);
  expect(store.get("a")?.step).toHaveLength(103);
});

test("an advance after a quiet time is fetched at once", async () => {
  store.want(["a"]);
  await settle(1000);
  store.markAdvanced(["a"], 3);
  await settle();
  expect(server.asked).toHaveLength(2);
});

test("what nobody shows any more is not fetched, and is up to date when it is shown again", async () => {
  const release = store.want(["a"]);
  await settle();
  release();
  server.steps.set("a", [1, 2, 3, 4]);
  store.markAdvanced(["a"], 4);
  await settle(1000);
  expect(server.asked).toHaveLength(1);
  store.want(["a"]);
  await settle();
  expect(server.asked.at(-1)).toEqual({ names: ["a"], fromStep: 4 });
  expect(store.get("a")?.step).toEqual([1, 2, 3, 4]);
});

test("a new bucket width fetches the whole series again", async () => {
  store.want(["a"]);
  await settle();
  server.bucketWidth = 2;
  server.steps.set("a", [0, 2, 4]);
  store.markAdvanced(["a"], 4);
  await settle(1000);
  expect(server.asked.at(-1)).toEqual({ names: ["a"], fromStep: null });
  expect(store.get("a")).toMatchObject({ step: [0, 2, 4], bucketWidth: 2 });
});

test("a new attempt replaces steps that the former one had reached", async () => {
  store.want(["a"]);
  await settle();
  server.steps.set("a", [1, 2]);
  store.markAll();
  await settle(1000);
  expect(store.get("a")?.step).toEqual([1, 2]);
});

test("a new attempt during the first fetch loses nothing, and the outdated answer is dropped", async () => {
  server.delayMs = 100;
  store.want(["a"]);
  await settle(50);
  server.steps.set("a", [1, 2]);
  store.markAll();
  await settle(1000);
  expect(server.asked).toHaveLength(2);
  expect(store.get("a")?.step).toEqual([1, 2]);
});

test("a failed request is told, tried again, and its names are not lost", async () => {
  server.failures = 1;
  store.want(["a"]);
  await settle();
  expect(store.error?.message).toBe("no answer");
  await settle(2000);
  expect(store.error).toBeNull();
  expect(store.get("a")?.step).toEqual([1, 2, 3]);
});

test("polling fetches only what has grown", async () => {
  store.want(["a", "b"]);
  await settle();
  await store.poll();
  await settle(1000);
  const before = server.asked.length;
  server.steps.get("b")?.push(4);
  await store.poll();
  await settle(1000);
  expect(server.asked.slice(before)).toEqual([{ names: ["b"], fromStep: 3 }]);
  await store.poll();
  await settle(1000);
  expect(server.asked).toHaveLength(before + 1);
});

test("listeners hear of news until they leave", async () => {
  const listener = vi.fn();
  const leave = store.subscribe(listener);
  store.want(["a"]);
  await settle();
  expect(listener).toHaveBeenCalledTimes(1);
  leave();
  store.markAdvanced(["a"], 3);
  await settle(1000);
  expect(listener).toHaveBeenCalledTimes(1);
});
