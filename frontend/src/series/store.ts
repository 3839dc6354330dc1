import { bucketStart, type Columns, EMPTY_COLUMNS, lastStep, mergeTail } from "./columns.ts";

/** What the server answers to a question for columns. */
export interface FetchedColumns {
  name: string;
  columns: Columns;
}

export interface SeriesSource {
  /** Columns of these names; only from a step on when one is given. */
  fetchColumns: (names: string[], fromStep: number | null) => Promise<FetchedColumns[]>;
  /** The last step and number of points of every series that exists. */
  fetchIndex: () => Promise<{ name: string; lastStep: number; numPoints: number }[]>;
}

/** At most four rounds of requests a second, however fast steps arrive. */
const MIN_INTERVAL_MS = 250;
const RETRY_MS = 2_000;

/**
 * The series of one run that something on the page shows. Charts say which names they want; the stream says what
 * advanced; one request for all of them brings the tail. Names that nobody shows are remembered as stale only.
 */
export class SeriesStore {
  private readonly wanted = new Map<string, number>();
  private readonly columns = new Map<string, Columns>();
  private readonly numPoints = new Map<string, number>();
  private readonly stale = new Map<string, number>();
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isFetching = false;
  private nextStart = 0;
  private generation = 0;
  private version = 0;
  /** Why the last request failed; null when it did not. */
  error: Error | null = null;

  constructor(private readonly source: SeriesSource) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  getVersion = (): number => this.version;

  get(name: string): Columns | undefined {
    return this.columns.get(name);
  }

  /** Keeps these names up to date until the returned function is called. */
  want(names: string[]): () => void {
    for (const name of names) {
      this.wanted.set(name, (this.wanted.get(name) ?? 0) + 1);
      if (!this.columns.has(name)) this.stale.set(name, 0);
    }
    this.plan();
    return () => this.release(names);
  }

  /** The stream says that these names have new points from this step on. */
  markAdvanced(names: string[], fromStep: number): void {
    for (const name of names) this.markStale(name, fromStep);
    this.plan();
  }

  /** A new attempt repeats steps: everything is fetched again. What is shown stays until then. */
  markAll(): void {
    this.generation += 1;
    for (const name of [...this.columns.keys(), ...this.wanted.keys()]) this.stale.set(name, 0);
    this.plan();
  }

  /** Without a stream: ask what exists and fetch what grew. */
  async poll(): Promise<void> {
    try {
      const index = await this.source.fetchIndex();
      for (const { name, lastStep: last, numPoints } of index) {
        if (this.numPoints.get(name) !== numPoints) {
          const known = this.columns.get(name);
          this.markStale(name, known ? Math.min(last, Math.max(0, lastStep(known))) : 0);
          this.numPoints.set(name, numPoints);
        }
      }
      this.plan();
    } catch (error) {
      this.fail(error);
    }
  }

  dispose(): void {
    this.listeners.clear();
    this.wanted.clear();
    if (this.timer) clearTimeout(this.timer);
  }

  private markStale(name: string, fromStep: number): void {
    this.stale.set(name, Math.min(fromStep, this.stale.get(name) ?? Number.POSITIVE_INFINITY));
  }

  private release(names: string[]): void {
    for (const name of names) {
      const count = (this.wanted.get(name) ?? 1) - 1;
      if (count > 0) this.wanted.set(name, count);
      else this.wanted.delete(name);
    }
  }

  private plan(delayMs = 0): void {
    if (this.timer || this.isFetching || !this.hasWork()) return;
    const wait = Math.max(delayMs, this.nextStart - Date.now(), 0);
    this.timer = setTimeout(() => void this.fetchStale(), wait);
  }

  private hasWork(): boolean {
    return [...this.stale.keys()].some((name) => this.wanted.has(name));
  }

  private async fetchStale(): Promise<void> {
    this.timer = null;
    this.isFetching = true;
    this.nextStart = Date.now() + MIN_INTERVAL_MS;
    const work = this.takeWork();
    let retryMs = 0;
    try {
      await Promise.all([this.fetchWhole(work.whole), this.fetchTail(work.tails)]);
      this.error = null;
    } catch (error) {
      for (const name of work.whole) this.markStale(name, 0);
      for (const [name, step] of work.tails) this.markStale(name, step);
      this.fail(error);
      retryMs = RETRY_MS;
    }
    this.isFetching = false;
    this.notify();
    this.plan(retryMs);
  }

  /** Moves the wanted ones out of `stale`: those never seen, and those of which the tail is enough. */
  private takeWork(): { whole: string[]; tails: Map<string, number> } {
    const whole: string[] = [];
    const tails = new Map<string, number>();
    for (const [name, step] of this.stale) {
      if (!this.wanted.has(name)) continue;
      const known = this.columns.get(name);
      if (!known || known.step.length === 0 || step <= 0) whole.push(name);
      else tails.set(name, bucketStart(step, known.bucketWidth));
      this.stale.delete(name);
    }
    return { whole, tails };
  }

  private async fetchWhole(names: string[]): Promise<void> {
    if (names.length === 0) return;
    const generation = this.generation;
    const fetched = new Map((await this.source.fetchColumns(names, null)).map((s) => [s.name, s.columns]));
    if (generation !== this.generation) return;
    for (const name of names) this.columns.set(name, fetched.get(name) ?? EMPTY_COLUMNS);
  }

  private async fetchTail(tails: Map<string, number>): Promise<void> {
    if (tails.size === 0) return;
    const generation = this.generation;
    const fromStep = Math.min(...tails.values());
    const fetched = await this.source.fetchColumns([...tails.keys()], fromStep);
    if (generation !== this.generation) return;
    for (const { name, columns } of fetched) {
      const merged = mergeTail(this.columns.get(name) ?? EMPTY_COLUMNS, columns, fromStep);
      if (merged) this.columns.set(name, merged);
      else this.markStale(name, 0);
    }
  }

  private fail(error: unknown): void {
    this.error = error instanceof Error ? error : new Error(String(error));
    this.notify();
  }

  private notify(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }
}
