import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import type { RunRead, Schemas } from "../../../api/client.ts";
import { alarmsQuery } from "../../../api/queries.ts";
import type { Mark } from "../../../charts/marks.ts";
import { useStream } from "../../../stream/use-stream.ts";

export type Alarm = Schemas["AlarmRead"];

/** The run's alarms, the active ones first; kept up to date by the stream. */
export function useAlarms({ id, num_active_alarms }: RunRead): Alarm[] {
  const queryClient = useQueryClient();
  const query = alarmsQuery(id, num_active_alarms);
  useStream(id, (event) => {
    if (event.kind === "alarm" || event.kind === "resync") {
      void queryClient.invalidateQueries({ queryKey: query.queryKey });
    }
  });
  return useQuery(query).data?.items ?? NONE;
}

const NONE: Alarm[] = [];

export const AlarmsContext = createContext<Alarm[]>(NONE);

/** The alarms of the run on the page. */
export function useRunAlarms(): Alarm[] {
  return useContext(AlarmsContext);
}

/** The charts point out where alarms were raised, but for those that a new attempt has undone. */
export function marksOf(alarms: Alarm[]): Mark[] {
  return alarms.filter(({ ending }) => ending !== "undone").map(({ step, title }) => ({ step, title }));
}
