import { expect, test } from "vitest";
import { EventParser } from "../../src/stream/sse.ts";

const STREAM = ': hello\n\nid: 7\nevent: series\ndata: {"a":1}\n\ndata: one\ndata: two\n\nevent: empty\n\n';
const EVENTS = [
  { event: "series", data: '{"a":1}', id: "7" },
  { event: "message", data: "one\ntwo", id: "7" },
];

test("reads fields, comments, several data lines; an event without data is none", () => {
  expect(new EventParser().push(STREAM)).toEqual(EVENTS);
});

test("it does not matter where the network cuts", () => {
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const parser = new EventParser();
    expect([...parser.push(STREAM.slice(0, cut)), ...parser.push(STREAM.slice(cut))]).toEqual(EVENTS);
  }
});

test("carriage returns end lines too, also when cut in two", () => {
  const text = STREAM.replaceAll("\n", "\r\n");
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser();
    expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual(EVENTS);
  }
});

test("an event that is not complete is not told", () => {
  expect(new EventParser().push("data: half\n")).toEqual([]);
});
