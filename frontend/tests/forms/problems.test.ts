import { expect, test } from "vitest";
import { countProblems, placeProblems, pointerOf } from "../../src/forms/problems.ts";
import { root } from "./run-config.ts";

const place = (pointer: string) =>
  Object.keys(placeProblems(root, [{ pointer, detail: "wrong" }], "/config"));

test("a problem lands at its field", () => {
  expect(place("/config/grpo/num_steps")).toEqual(["/grpo/num_steps"]);
  expect(place("/config/trainer/optimizer/learning_rate")).toEqual(["/trainer/optimizer/learning_rate"]);
});

test("the name of a union's variant on the way is passed over", () => {
  expect(place("/config/policy/scratch/hidden_size")).toEqual(["/policy/hidden_size"]);
  expect(place("/config/drafter/eagle3/online/batch_size")).toEqual(["/drafter/online/batch_size"]);
});

test("a missing or unknown kind, or a key that is no field, lands at the nearest field", () => {
  expect(place("/config/drafter/kind")).toEqual(["/drafter"]);
  expect(place("/config/grpo/num_stepz")).toEqual(["/grpo"]);
  expect(place("/config")).toEqual([""]);
});

test("what is not part of the configuration keeps its pointer", () => {
  expect(place("/name")).toEqual(["/name"]);
  expect(place("/configuration")).toEqual(["/configuration"]);
});

test("several messages of a field stay together, the same one once", () => {
  const problems = placeProblems(
    root,
    [
      { pointer: "/config/grpo/num_steps", detail: "too small" },
      { pointer: "/config/grpo/num_steps", detail: "too small" },
      { pointer: "/config/grpo/num_steps", detail: "not whole" },
      { pointer: "/name", detail: "empty" },
    ],
    "/config",
  );
  expect(problems).toEqual({ "/grpo/num_steps": ["too small", "not whole"], "/name": ["empty"] });
  expect(countProblems(problems)).toBe(3);
});

test("keys with slashes and tildes survive the way through a pointer", () => {
  expect(pointerOf(["a/b", "c~d"])).toBe("/a~1b/c~0d");
});
