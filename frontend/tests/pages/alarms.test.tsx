// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Alarms } from "../../src/pages/run/alarms/alarms.tsx";
import { type Alarm, AlarmsContext, marksOf } from "../../src/pages/run/alarms/use-alarms.ts";

afterEach(cleanup);

const drift: Alarm = {
  name: "distribution_drift",
  title: "Distribution drift",
  meaning: "Samples are not the policy's.",
  what_to_do: "Stop the run.",
  is_active: true,
  attempt: 1,
  step: 12,
  time: "2030-01-31T12:00:00Z",
  message: "Distance 0.21.",
  ending: null,
  ended_step: null,
  ended_at: null,
};
const cleared: Alarm = {
  ...drift,
  name: "no_speedup",
  title: "No speedup",
  is_active: false,
  ending: "cleared",
  ended_step: 9,
  step: 5,
};
const undone: Alarm = {
  ...cleared,
  name: "draft_decay",
  title: "Draft falling behind",
  ending: "undone",
  ended_step: 10,
  step: 15,
};

function show(alarms: Alarm[], isEnded = false) {
  render(
    <AlarmsContext value={alarms}>
      <Alarms isEnded={isEnded} />
    </AlarmsContext>,
  );
}

test("an active alarm says since when, what was measured and what to do", () => {
  show([drift]);
  const text = screen.getByRole("alert").textContent;
  for (const part of [
    "Distribution drift",
    "since step 12",
    "Distance 0.21.",
    "Samples are not",
    "Stop the run.",
  ]) {
    expect(text).toContain(part);
  }
  expect(screen.queryByText(/earlier/)).toBeNull();
});

test("what is over is folded, with how it ended", () => {
  show([drift, cleared, undone]);
  expect(screen.getAllByRole("alert")).toHaveLength(1);
  const fold = screen.getByText("2 earlier alarms").closest("details");
  expect(fold?.open).toBe(false);
  expect(fold?.textContent).toContain("No speedup at step 5, cleared at step 9.");
  expect(fold?.textContent).toContain("at step 15, undone when a new attempt went on from step 10.");
});

test("of a run that has ended it is told in the past", () => {
  show([drift], true);
  expect(screen.getByRole("alert").textContent).toContain("from step 12 to the end");
});

test("without alarms nothing is shown", () => {
  show([]);
  expect(screen.queryByRole("region")).toBeNull();
});

test("the charts point out what was raised and not undone", () => {
  expect(marksOf([drift, cleared, undone]).map(({ step }) => step)).toEqual([12, 5]);
});
