import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { Schemas } from "../../api/client.ts";
import { runsKey } from "../../api/queries.ts";
import type { RunState } from "../../stream/events.ts";
import { ALL_RUNS } from "../../stream/hub.ts";
import { useStream } from "../../stream/use-stream.ts";

type Pages = InfiniteData<Schemas["RunPage"]>;

/** The list is asked for again at most this often, however much happens. */
const REFRESH_INTERVAL_MS = 2_000;

/** Keeps the list live: stage and step move at once, figures and new runs within two seconds. */
export function useLiveRuns(): void {
  const queryClient = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  useStream(ALL_RUNS, (event) => {
    if (event.kind === "run") {
      const patch = (pages: Pages | undefined) => pages && patched(pages, event.runId, event.body);
      queryClient.setQueriesData<Pages>({ queryKey: runsKey }, patch);
    }
    if (event.kind === "log" || event.kind === "samples" || timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      void queryClient.invalidateQueries({ queryKey: runsKey });
    }, REFRESH_INTERVAL_MS);
  });
}

function patched(pages: Pages, runId: string, state: Partial<RunState>): Pages {
  const items = (page: Schemas["RunPage"]) =>
    page.items.map((run) => (run.id === runId ? { ...run, ...state } : run));
  return { ...pages, pages: pages.pages.map((page) => ({ ...page, items: items(page) })) };
}
