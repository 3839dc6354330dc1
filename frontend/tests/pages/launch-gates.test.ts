import { expect, test } from "vitest";
import { gateMessages, gatesDraft, gatesOf, NO_GATES } from "../../src/pages/launch/gates.ts";

const gate = (assertion: string, baseline: string | null = null) => ({
  assertion,
  name: null,
  baseline,
  confidence: 0.99,
  on_undecided: "fail" as const,
  on_no_baseline: "pass" as const,
});

test("each line is a gate, and those that say baseline get the baseline", () => {
  const text = "acceptance_length >= 2.8\n\n  reward >= baseline - 0.02  \n";
  expect(gatesOf({ ...NO_GATES, text, baseline: " label:branch:main " })).toEqual([
    { assertion: "acceptance_length >= 2.8" },
    { assertion: "reward >= baseline - 0.02", baseline: "label:branch:main" },
  ]);
  expect(gatesOf(NO_GATES)).toEqual([]);
  expect(gatesOf({ ...NO_GATES, text: "reward >= baseline" })).toEqual([{ assertion: "reward >= baseline" }]);
});

test("a clone's gates keep what the form does not show, each its own baseline too", () => {
  const known = [
    gate("no alarms"),
    gate("reward >= baseline", "origin"),
    gate("kl <= baseline", "label:a:b"),
  ];
  const draft = gatesDraft(known);
  expect(draft.text.split("\n")).toHaveLength(3);
  expect(draft.baseline).toBe("origin");
  expect(gatesOf(draft)).toEqual(known);
  const changed = gatesOf({ ...draft, text: `${draft.text}\nloss <= 1`, baseline: "label:c:d" });
  expect(changed.map(({ baseline }) => baseline ?? null)).toEqual([null, "label:c:d", "label:c:d", null]);
  expect(changed[1]?.confidence).toBe(0.99);
});

test("what the server says of a gate is told by its line", () => {
  const found = gateMessages("no alarms\n\nreward > \nreward >= baseline", {
    "/gates": ["must have at most 32 entries"],
    "/gates/1/assertion": ["at character 10: found the end"],
    "/gates/2/baseline": ["say which"],
    "/gates/0/confidence": ["must be below 1"],
    "/name": ["is required"],
  });
  expect(found.text).toEqual([
    "must have at most 32 entries",
    "Line 3: at character 10: found the end",
    "Line 1, confidence: must be below 1",
  ]);
  expect(found.baseline).toEqual(["Line 4: say which"]);
});
