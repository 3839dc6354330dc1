import { AlarmIcon } from "../../../design/icons.tsx";
import { RelativeTime } from "../../../design/time.tsx";
import { plural } from "../../../format/number.ts";
import { type Alarm, useRunAlarms } from "./use-alarms.ts";

/** What is wrong with the run and what to do about it; what was wrong before is folded. */
export function Alarms({ isEnded }: { isEnded: boolean }) {
  const alarms = useRunAlarms();
  const active = alarms.filter(({ is_active }) => is_active);
  const over = alarms.filter(({ is_active }) => !is_active);
  if (alarms.length === 0) return null;
  return (
    <section className="alarms" aria-label="Alarms">
      {active.map((alarm) => (
        <ActiveAlarm key={alarm.name} alarm={alarm} isEnded={isEnded} />
      ))}
      {over.length > 0 && (
        <details className="small">
          <summary>{plural(over.length, "earlier alarm")}</summary>
          <ul>
            {over.map((alarm) => (
              <PastAlarm key={`${alarm.name} ${alarm.time}`} alarm={alarm} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function ActiveAlarm({ alarm, isEnded }: { alarm: Alarm; isEnded: boolean }) {
  return (
    <div className="note tone-failed alarm" role="alert">
      <h2>
        <AlarmIcon />
        {alarm.title}
        <span className="muted small">
          {isEnded ? "from" : "since"} step {alarm.step}
          {isEnded ? " to the end" : ""}, <RelativeTime time={alarm.time} />
        </span>
      </h2>
      <p>{alarm.message}</p>
      <p className="muted">{alarm.meaning}</p>
      {alarm.what_to_do && (
        <p>
          <strong>What to do:</strong> {alarm.what_to_do}
        </p>
      )}
    </div>
  );
}

function PastAlarm({ alarm }: { alarm: Alarm }) {
  return (
    <li>
      <strong title={alarm.meaning}>{alarm.title}</strong> at step {alarm.step}, {endWords(alarm)}.{" "}
      <span className="muted">{alarm.message}</span>
    </li>
  );
}

function endWords({ ending, ended_step }: Alarm): string {
  return ending === "cleared"
    ? `cleared at step ${ended_step}`
    : `undone when a new attempt went on from step ${ended_step}`;
}
