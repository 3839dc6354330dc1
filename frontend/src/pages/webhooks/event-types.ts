import type { Schemas } from "../../api/client.ts";

export type EventType = Schemas["WebhookCreate"]["events"][number];

/** What a webhook can be told of, in the order in which it happens. */
export const EVENT_TYPES: { type: EventType; words: string }[] = [
  { type: "run.queued", words: "a run was launched" },
  { type: "run.started", words: "its worker reports" },
  { type: "run.resumed", words: "it runs again" },
  { type: "run.lost", words: "its worker is silent" },
  { type: "run.succeeded", words: "it has done all its steps" },
  { type: "run.failed", words: "it has failed" },
  { type: "run.stopped", words: "it was stopped" },
  { type: "alarm.raised", words: "an alarm is raised" },
  { type: "alarm.cleared", words: "an alarm is over" },
  { type: "gate.passed", words: "all gates of a run are met" },
  { type: "gate.failed", words: "a gate of a run is not met" },
];

/** What most receivers want. */
export const USUAL: EventType[] = ["run.succeeded", "run.failed", "alarm.raised", "gate.failed"];
