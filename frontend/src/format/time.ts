const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time in the two largest units that matter: "4.2 s", "3 min 20 s", "2 h 05 min", "3 d 4 h". */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${pad(whole % MINUTE)} s`;
  if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${pad(Math.floor((whole % HOUR) / MINUTE))} min`;
  return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** How long ago, in one unit: "just now", "40 s ago", "3 min ago", "2 d ago"; the future says "in 5 min". */
export function formatRelative(time: string | Date, now: Date): string {
  const seconds = (now.getTime() - new Date(time).getTime()) / 1000;
  const size = Math.abs(seconds);
  if (size < 5) return "just now";
  const text = oneUnit(size);
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

function oneUnit(seconds: number): string {
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.round(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.round(seconds / HOUR)} h`;
  return `${Math.round(seconds / DAY)} d`;
}

/** Local date and time to the second, with the zone, for a hover text. */
export function formatExact(time: string | Date): string {
  return new Date(time).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  });
}

/** Time of day to the millisecond, for log lines. */
export function formatClock(time: string | Date): string {
  const date = new Date(time);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(":");
  return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
