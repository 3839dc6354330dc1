import { createContext, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { seriesSource } from "../api/series.ts";
import { useStream } from "../stream/use-stream.ts";
import type { Columns } from "./columns.ts";
import { SeriesStore } from "./store.ts";

/** The store of the run on the page, kept up to date by the stream. */
export function useSeriesStore(runId: string, currentAttempt: number): SeriesStore {
  const [store, setStore] = useState(() => new SeriesStore(seriesSource(runId)));
  const [storeRunId, setStoreRunId] = useState(runId);
  if (storeRunId !== runId) {
    setStoreRunId(runId);
    setStore(new SeriesStore(seriesSource(runId)));
  }
  useStream(runId, (event) => {
    if (event.kind === "series") store.markAdvanced(event.names, event.fromStep);
    if (event.kind === "resync") void store.poll();
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt repeats steps, so all is fetched again.
  useEffect(() => store.markAll(), [store, currentAttempt]);
  return store;
}

export const SeriesContext = createContext<SeriesStore | null>(null);

/** The columns of these series, fetched and followed while the component is mounted. */
export function useSeries(names: string[], isWanted = true): (name: string) => Columns | undefined {
  const store = useContext(SeriesContext);
  if (!store) throw new Error("useSeries needs a SeriesContext around it");
  const key = names.join(",");
  useEffect(() => {
    if (isWanted && key) return store.want(key.split(","));
  }, [store, key, isWanted]);
  useSyncExternalStore(store.subscribe, store.getVersion);
  return (name) => store.get(name);
}

/** Why the series could not be brought up to date just now; null while they are. */
export function useSeriesError(): Error | null {
  const store = useContext(SeriesContext);
  if (!store) throw new Error("useSeriesError needs a SeriesContext around it");
  useSyncExternalStore(store.subscribe, store.getVersion);
  return store.error;
}
