// @vitest-environment happy-dom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { acceptanceLength, type Round, readRound, type Sample } from "../../src/pages/run/samples/tokens.ts";
import { ResponseText, Rounds } from "../../src/pages/run/samples/tokens-view.tsx";

afterEach(cleanup);

const vocabulary = { "1": "a", "2": "b", "3": "c", "9": "<img src=x onerror=alert(1)>" };

function round(drafted: number[], num_accepted: number, emitted: number | null): Round {
  const logprobs = drafted.map(() => Math.log(0.5));
  return { drafted, num_accepted, emitted, draft_logprobs: logprobs, policy_logprobs: logprobs };
}

function sample(rounds: Round[]): Sample {
  const rest = {
    prompt: "p",
    response: "r",
    reward: 1,
    advantage: 0,
    is_truncated: false,
    attempt: 1,
    step: 1,
    id: 1,
  };
  return { ...rest, rounds, vocabulary };
}

const fates = (r: Round) => {
  const { emitted, rejected } = readRound(r, vocabulary);
  return [emitted, rejected].map((tokens) => tokens.map(({ text, fate }) => `${text} ${fate}`));
};

test("a rejected draft is followed by a correction", () => {
  expect(fates(round([1, 2, 3], 1, 3))).toEqual([
    ["a accepted", "c corrected"],
    ["b rejected", "c rejected"],
  ]);
});

test("a draft accepted whole is followed by a bonus", () => {
  expect(fates(round([1, 2], 2, 3))).toEqual([["a accepted", "b accepted", "c bonus"], []]);
});

test("a round without a draft is plain", () => {
  expect(fates(round([], 0, 1))).toEqual([["a plain"], []]);
});

test("a response that ends inside the accepted block has no further token", () => {
  expect(fates(round([1, 2], 1, null))).toEqual([["a accepted"], ["b rejected"]]);
});

test("probabilities come from the log-probabilities; emitted tokens of the policy have none", () => {
  const { emitted } = readRound(round([1], 1, 2), vocabulary);
  expect(emitted[0]).toMatchObject({ p: expect.closeTo(0.5, 12), q: expect.closeTo(0.5, 12) });
  expect(emitted[1]).toMatchObject({ p: null, q: null });
});

test("the acceptance length counts corrections and bonuses, and speculated rounds only", () => {
  expect(acceptanceLength(sample([round([1, 2, 3], 3, 1), round([1, 2, 3], 0, 1), round([], 0, 1)]))).toBe(
    5 / 2,
  );
  expect(acceptanceLength(sample([round([], 0, 1)]))).toBeNull();
});

test("the text is what was emitted; rounds show the rejected tokens struck through", () => {
  const shown = sample([round([1, 2, 3], 1, 3), round([1], 1, 2)]);
  expect(render(<ResponseText sample={shown} />).container.textContent).toBe("acab");
  const rounds = render(<Rounds sample={shown} />).container;
  expect([...rounds.querySelectorAll("del")].map((token) => token.textContent)).toEqual(["b", "c"]);
});

test("a token that looks like HTML stays text", () => {
  const { container } = render(<ResponseText sample={sample([round([], 0, 9)])} />);
  expect(container.querySelector("img")).toBeNull();
  expect(container.textContent).toBe(vocabulary["9"]);
});

test("hovering says how a token came about", () => {
  const { container } = render(<ResponseText sample={sample([round([1], 1, 2)])} />);
  expect(container.querySelector(".token-accepted")?.getAttribute("title")).toBe(
    "drafted, accepted · p 0.500 · q 0.500",
  );
});
