import { StreamConnection, type StreamState } from "./connection.ts";
import { type RunEvent, readEvent } from "./events.ts";

export type RunHandler = (event: RunEvent) => void;

/** A run's id, or every run. */
export type Topic = string;
export const ALL_RUNS: Topic = "all";

type Connect = (options: ConstructorParameters<typeof StreamConnection>[0]) => {
  close: () => void;
  lastEventId: string | null;
};

/** While the stream is down, this often everything shown is asked for again. */
export const POLL_INTERVAL_MS = 2_000;

/**
 * One multiplexed stream for the whole tab: pages say which runs they show, and the connection follows. While it is
 * down, handlers are told to look again every two seconds.
 */
export class StreamHub {
  private readonly handlers = new Map<Topic, Set<RunHandler>>();
  private readonly stateListeners = new Set<() => void>();
  private connection: ReturnType<Connect> | null = null;
  private connectedTopics = "";
  private lastEventId: string | null = null;
  private isPlanned = false;
  private pollTimer: ReturnType<typeof setInterval> | null = null;
  private state: StreamState = "connecting";

  constructor(private readonly connect: Connect = (options) => new StreamConnection(options)) {}

  getState = (): StreamState => this.state;

  subscribeState = (listener: () => void): (() => void) => {
    this.stateListeners.add(listener);
    return () => this.stateListeners.delete(listener);
  };

  /** Calls the handler with what happens to a run, until the returned function is called. */
  follow(topic: Topic, handler: RunHandler): () => void {
    const handlers = this.handlers.get(topic) ?? new Set();
    handlers.add(handler);
    this.handlers.set(topic, handlers);
    this.plan();
    return () => {
      handlers.delete(handler);
      if (handlers.size === 0) this.handlers.delete(topic);
      this.plan();
    };
  }

  /** Pages come and go within one turn of the event loop; the connection changes once after it. */
  private plan(): void {
    if (this.isPlanned) return;
    this.isPlanned = true;
    setTimeout(() => {
      this.isPlanned = false;
      this.reconnect();
    });
  }

  private reconnect(): void {
    const topics = this.handlers.has(ALL_RUNS) ? ALL_RUNS : [...this.handlers.keys()].sort().join(",");
    if (topics === this.connectedTopics) return;
    this.lastEventId = this.connection?.lastEventId ?? this.lastEventId;
    this.connection?.close();
    this.connection = null;
    this.connectedTopics = topics;
    if (!topics) {
      this.setState("connecting");
      return;
    }
    this.connection = this.connect({
      url: `/api/v1/stream?runs=${topics}`,
      lastEventId: this.lastEventId,
      onEvent: ({ event, data }) => this.dispatch(readEvent(event, data)),
      onState: (state) => this.setState(state),
    });
  }

  private dispatch(event: RunEvent | null): void {
    if (!event) return;
    const topics = event.kind === "resync" ? [...this.handlers.keys()] : [event.runId, ALL_RUNS];
    for (const topic of topics) for (const handler of this.handlers.get(topic) ?? []) handler(event);
  }

  private setState(state: StreamState): void {
    this.pollWhile(state === "down");
    if (state === this.state) return;
    this.state = state;
    for (const listener of this.stateListeners) listener();
  }

  private pollWhile(isDown: boolean): void {
    if (isDown && !this.pollTimer) {
      this.pollTimer = setInterval(() => this.dispatch({ kind: "resync" }), POLL_INTERVAL_MS);
    } else if (!isDown && this.pollTimer) {
      clearInterval(this.pollTimer);
      this.pollTimer = null;
    }
  }
}
