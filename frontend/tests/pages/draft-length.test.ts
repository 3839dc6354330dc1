import { expect, test } from "vitest";
import { draftLengthWords } from "../../src/pages/run/draft-length.ts";

const config = (draft_length_control?: string) => ({ drafter: { draft_length: 6, draft_length_control } });

test("a fixed k bounds the acceptance length by k + 1; so it was before k could be controlled", () => {
  for (const control of ["fixed", undefined]) {
    expect(draftLengthWords(config(control), 6)).toEqual({
      suffix: "of 7",
      hint: "Tokens per verification round, k = 6",
    });
  }
});

test("a controlled k bounds it by the mean k + 1", () => {
  expect(draftLengthWords(config("measured"), 3.2)).toEqual({
    suffix: "of 4.2",
    hint: "k = 3.2 on average, at most 6",
  });
  expect(draftLengthWords(config("measured"), null).suffix).toBe("of up to 7");
});

test("without a drafter there is no k", () => {
  expect(draftLengthWords({ drafter: { kind: "none" } }, null).suffix).toBe("");
});
