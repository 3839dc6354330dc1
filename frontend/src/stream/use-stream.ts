import { useEffect, useRef, useSyncExternalStore } from "react";
import type { StreamState } from "./connection.ts";
import { type RunHandler, StreamHub, type Topic } from "./hub.ts";

const hub = new StreamHub();

/** Calls the handler with what happens to a run, or to all runs, while the component is mounted. */
export function useStream(topic: Topic, handler: RunHandler): void {
  const latest = useRef(handler);
  useEffect(() => {
    latest.current = handler;
  });
  useEffect(() => hub.follow(topic, (event) => latest.current(event)), [topic]);
}

export function useStreamState(): StreamState {
  return useSyncExternalStore(hub.subscribeState, hub.getState);
}
