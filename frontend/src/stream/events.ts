import type { RunStatus } from "../api/client.ts";

/** What the stream says about a run: what advanced, not the data itself. */
export type RunEvent =
  | { kind: "run"; runId: string; body: Partial<RunState> }
  | { kind: "series"; runId: string; names: string[]; fromStep: number }
  | { kind: "samples"; runId: string; step: number }
  | { kind: "alarm"; runId: string; step: number }
  | { kind: "log"; runId: string; lastId: number }
  /** History is gone or was never seen: look at everything again. */
  | { kind: "resync" };

export interface RunState {
  status: RunStatus;
  stage: string | null;
  step: number;
  stage_progress_fraction: number | null;
  current_attempt: number;
  num_active_alarms: number;
  gates_verdict: "passed" | "failed" | "pending" | null;
}

/** Reads one event off the wire; null for one that this version does not know. */
export function readEvent(event: string, data: string): RunEvent | null {
  // What happened between a page's first look and the moment the stream was live was announced to nobody.
  if (event === "resync" || event === "open") return { kind: "resync" };
  const body = JSON.parse(data) as Record<string, unknown>;
  const runId = String(body.run_id);
  switch (event) {
    case "run":
      return { kind: "run", runId, body: withoutId(body) };
    case "series":
      return {
        kind: "series",
        runId,
        names: body.names as string[],
        fromStep: Number(body.from_step ?? body.step),
      };
    case "samples":
    case "alarm":
      return { kind: event, runId, step: Number(body.step) };
    case "log":
      return { kind: "log", runId, lastId: Number(body.last_id) };
    default:
      return null;
  }
}

function withoutId({ run_id: _, ...body }: Record<string, unknown>): Partial<RunState> {
  return body as Partial<RunState>;
}
