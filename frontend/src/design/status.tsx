import type { ReactNode } from "react";
import type { RunStatus } from "../api/client.ts";
import {
  DispatchingIcon,
  FailedIcon,
  LostIcon,
  QueuedIcon,
  RunningIcon,
  StoppedIcon,
  SucceededIcon,
} from "./icons.tsx";

export const STATUSES: Record<RunStatus, { word: string; icon: () => ReactNode; tone: string }> = {
  queued: { word: "Queued", icon: QueuedIcon, tone: "stopped" },
  dispatching: { word: "Starting", icon: DispatchingIcon, tone: "running" },
  running: { word: "Running", icon: RunningIcon, tone: "running" },
  lost: { word: "Lost", icon: LostIcon, tone: "lost" },
  succeeded: { word: "Succeeded", icon: SucceededIcon, tone: "succeeded" },
  failed: { word: "Failed", icon: FailedIcon, tone: "failed" },
  stopped: { word: "Stopped", icon: StoppedIcon, tone: "stopped" },
};

/** A run's status as icon, word and colour. */
export function StatusBadge({ status, isStopping = false }: { status: RunStatus; isStopping?: boolean }) {
  const { word, icon: Icon, tone } = STATUSES[status];
  return (
    <span className={`badge tone-${tone}`}>
      <Icon />
      {isStopping ? "Stopping" : word}
    </span>
  );
}
