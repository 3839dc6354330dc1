import { expect, test } from "vitest";
import { type LogLine, MAX_LINES, mergeLines, withoutAnsi } from "../../src/pages/run/log/lines.ts";

const lines = (...ids: number[]): LogLine[] =>
  ids.map((id) => ({
    id,
    attempt: 1,
    emitter: "driver/0",
    time: "2030-01-01T00:00:00Z",
    level: "info",
    message: `${id}`,
  }));
const merged = (known: number[], fetched: number[]) =>
  mergeLines(lines(...known), lines(...fetched)).map(({ id }) => id);

test("newer lines go behind, older ones in front, repeated ones once", () => {
  expect(merged([3, 5], [6, 9])).toEqual([3, 5, 6, 9]);
  expect(merged([3, 5], [1, 2])).toEqual([1, 2, 3, 5]);
  expect(merged([3, 5], [4, 5, 6])).toEqual([3, 4, 5, 6]);
  expect(merged([], [1])).toEqual([1]);
  expect(merged([1], [])).toEqual([1]);
});

test("a long log keeps its newest lines", () => {
  const known = Array.from({ length: MAX_LINES }, (_, i) => i + 1);
  const kept = merged(known, [MAX_LINES + 1]);
  expect([kept.length, kept[0], kept.at(-1)]).toEqual([MAX_LINES, 2, MAX_LINES + 1]);
});

test("terminal codes are taken out, text stays", () => {
  const esc = String.fromCharCode(27);
  expect(withoutAnsi(`${esc}[1;31mred${esc}[0m [ok] ${esc}]0;title${String.fromCharCode(7)}end`)).toBe(
    "red [ok] end",
  );
});
