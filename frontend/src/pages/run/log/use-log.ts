import { useCallback, useEffect, useReducer, useRef } from "react";
import { api, type Schemas, unwrap } from "../../../api/client.ts";
import { useStream } from "../../../stream/use-stream.ts";
import { type LogLine, mergeLines } from "./lines.ts";

export interface LogFilter {
  level: Schemas["LogLineRead"]["level"] | "";
  search: string;
}

interface LogState {
  lines: LogLine[];
  isLoaded: boolean;
  hasOlder: boolean;
  error: unknown;
}

const START: LogState = { lines: [], isLoaded: false, hasOlder: false, error: null };
const PAGE_SIZE = 500;

type Action =
  | { type: "restart" }
  | { type: "newest" | "newer" | "older"; items: LogLine[] }
  | { type: "failed"; error: unknown };

function reduce(state: LogState, action: Action): LogState {
  if (action.type === "restart") return START;
  if (action.type === "failed") return { ...state, error: action.error };
  const hasOlder = action.type === "newer" ? state.hasOlder : action.items.length === PAGE_SIZE;
  return { lines: mergeLines(state.lines, action.items), isLoaded: true, hasOlder, error: null };
}

/** A run's log as far as it was read, followed by the stream. */
export function useLog(runId: string, filter: LogFilter) {
  const [state, dispatch] = useReducer(reduce, START);
  const session = useRef(0);
  const lastId = useRef(0);
  const isFetching = useRef(false);
  const isBehind = useRef(false);
  const { level, search } = filter;

  const fetchPage = useCallback(
    (bounds: { after?: number; before?: number }) => {
      const query = { ...bounds, limit: PAGE_SIZE, level: level || undefined, search: search || undefined };
      return unwrap(api.GET("/api/v1/runs/{run_id}/logs", { params: { path: { run_id: runId }, query } }));
    },
    [runId, level, search],
  );

  const load = useCallback(
    async (type: "newest" | "newer" | "older", bounds: { after?: number; before?: number }) => {
      const mine = session.current;
      try {
        const page = await fetchPage(bounds);
        if (mine !== session.current) return 0;
        lastId.current = Math.max(lastId.current, page.last_id ?? 0);
        dispatch({ type, items: page.items });
        return page.items.length;
      } catch (error) {
        if (mine === session.current) dispatch({ type: "failed", error });
        return 0;
      }
    },
    [fetchPage],
  );

  /** One request at a time; what comes meanwhile is fetched after it, whole pages until nothing is left. */
  const loadNewer = useCallback(async () => {
    isBehind.current = true;
    if (isFetching.current) return;
    isFetching.current = true;
    const mine = session.current;
    while (isBehind.current && mine === session.current) {
      isBehind.current = false;
      const count = await load("newer", { after: lastId.current });
      if (count === PAGE_SIZE) isBehind.current = true;
    }
    isFetching.current = false;
  }, [load]);

  useEffect(() => {
    session.current += 1;
    lastId.current = 0;
    isFetching.current = true;
    dispatch({ type: "restart" });
    const mine = session.current;
    void load("newest", {}).then(() => {
      if (mine !== session.current) return;
      isFetching.current = false;
      if (isBehind.current) void loadNewer();
    });
  }, [load, loadNewer]);

  useStream(runId, (event) => {
    if (event.kind === "resync" || (event.kind === "log" && event.lastId > lastId.current)) void loadNewer();
  });

  const loadOlder = () => load("older", { before: state.lines[0]?.id });
  return { ...state, loadOlder };
}
