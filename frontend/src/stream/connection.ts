import { EventParser, type ServerEvent } from "./sse.ts";

/** `connecting` at first, `open` while events can arrive, `down` while it is tried again. */
export type StreamState = "connecting" | "open" | "down";

export interface StreamOptions {
  url: string;
  onEvent: (event: ServerEvent) => void;
  onState: (state: StreamState) => void;
  /** Resume after this event, when a former connection saw it. */
  lastEventId?: string | null;
  fetch?: typeof fetch;
}

/** The server sends a comment every 15 s; a connection silent for longer than this is dead. */
const SILENCE_LIMIT_MS = 40_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/** A server-sent event stream that reconnects by itself, with the id of the last event it saw. */
export class StreamConnection {
  lastEventId: string | null;
  private controller = new AbortController();
  private retryMs = FIRST_RETRY_MS;
  private isClosed = false;

  constructor(private readonly options: StreamOptions) {
    this.lastEventId = options.lastEventId ?? null;
    options.onState("connecting");
    void this.run();
  }

  close(): void {
    this.isClosed = true;
    this.controller.abort();
  }

  private async run(): Promise<void> {
    while (!this.isClosed) {
      try {
        await this.readUntilEnd();
      } catch {
        // Whatever broke the connection, it is tried again; the state tells the reader.
      }
      if (this.isClosed) return;
      this.options.onState("down");
      await this.pause(this.retryMs);
      this.retryMs = Math.min(this.retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  private async readUntilEnd(): Promise<void> {
    this.controller = new AbortController();
    const silence = new Watchdog(SILENCE_LIMIT_MS, () => this.controller.abort());
    try {
      const response = await this.open();
      this.retryMs = FIRST_RETRY_MS;
      this.options.onState("open");
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        silence.reset();
        for (const event of parser.push(part.value)) this.take(event);
      }
    } finally {
      silence.stop();
    }
  }

  private async open(): Promise<Response> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.lastEventId !== null) headers["Last-Event-ID"] = this.lastEventId;
    const send = this.options.fetch ?? fetch;
    const response = await send(this.options.url, {
      headers,
      signal: this.controller.signal,
      cache: "no-store",
    });
    if (!response.ok) throw new Error(`stream answered ${response.status}`);
    return response;
  }

  private take(event: ServerEvent): void {
    if (this.isClosed) return;
    if (event.id !== null) this.lastEventId = event.id;
    this.options.onEvent(event);
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }
}

/** Calls back when it was not reset for a while. */
class Watchdog {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly limitMs: number,
    private readonly onSilence: () => void,
  ) {
    this.reset();
  }

  reset(): void {
    this.stop();
    this.timer = setTimeout(this.onSilence, this.limitMs);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
