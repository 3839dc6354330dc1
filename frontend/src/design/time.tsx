import { useSyncExternalStore } from "react";
import { formatExact, formatRelative } from "../format/time.ts";

let now = new Date();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function tick(): void {
  now = new Date();
  for (const listener of listeners) listener();
}

/** The time, once a second; one timer for the whole page. */
export function useNow(): Date {
  return useSyncExternalStore(subscribe, () => now);
}

/** A time as its distance from now; the exact time on hover. */
export function RelativeTime({ time }: { time: string }) {
  const current = useNow();
  return (
    <time dateTime={time} title={formatExact(time)}>
      {formatRelative(time, current)}
    </time>
  );
}
