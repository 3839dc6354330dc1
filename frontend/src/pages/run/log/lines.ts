import type { Schemas } from "../../../api/client.ts";

export type LogLine = Schemas["LogLineRead"];

/** More than this is not kept in the page; older lines are asked for again when wanted. */
export const MAX_LINES = 5_000;

/** Puts lines together in the order of their ids, each once; the newest are kept when there are too many. */
export function mergeLines(known: LogLine[], fetched: LogLine[]): LogLine[] {
  const [first, last] = [fetched[0], fetched.at(-1)];
  if (!first || !last) return known;
  const [start, end] = [known[0], known.at(-1)];
  if (!start || !end || first.id > end.id) return [...known, ...fetched].slice(-MAX_LINES);
  if (last.id < start.id) return [...fetched, ...known];
  const byId = new Map([...known, ...fetched].map((line) => [line.id, line]));
  return [...byId.values()].sort((a, b) => a.id - b.id).slice(-MAX_LINES);
}

const ESCAPE = String.fromCharCode(27);
const ANSI = new RegExp(
  `${ESCAPE}(?:\\[[0-?]*[ -/]*[@-~]|\\][^\\x07${ESCAPE}]*(?:\\x07|${ESCAPE}\\\\)?|[@-Z\\\\-_])`,
  "g",
);

/** The text without a terminal's colour and cursor codes. */
export function withoutAnsi(text: string): string {
  return text.replace(ANSI, "");
}
