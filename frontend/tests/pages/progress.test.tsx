// @vitest-environment happy-dom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { RunProgress } from "../../src/pages/run/progress.tsx";

afterEach(cleanup);

type Progressing = Parameters<typeof RunProgress>[0]["run"];

const draft: Progressing = {
  job: "draft_training",
  status: "running",
  step: 0,
  num_steps: 0,
  stage: "draft_pretraining",
  stage_progress_fraction: 0.43,
  is_ended: false,
};

function shown(run: Progressing): [string, string] {
  const { container } = render(<RunProgress run={run} />);
  const bar = container.querySelector<HTMLElement>(".progress-bar > div");
  return [container.textContent ?? "", bar?.style.width ?? ""];
}

test("draft training shows its stage, never steps out of none", () => {
  expect(shown(draft)).toEqual(["Training the draft, 43 %", "43%"]);
  expect(shown({ ...draft, status: "queued", stage: null })).toEqual(["Draft training", "0%"]);
  expect(shown({ ...draft, status: "succeeded", is_ended: true })).toEqual(["Draft trained", "100%"]);
  expect(shown({ ...draft, status: "failed", is_ended: true })).toEqual(["Draft training", "0%"]);
});

test("a run counts the steps that are done", () => {
  const run: Progressing = {
    ...draft,
    job: "grpo",
    step: 12,
    num_steps: 40,
    stage: "train",
    stage_progress_fraction: null,
  };
  expect(shown(run)).toEqual(["Step 12/40 · Training the policy", "27.500000000000004%"]);
});
