import { formatNumber } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";

/** What the acceptance length is out of, k + 1, and how k is chosen; `mean` is the latest step's mean k. */
export function draftLengthWords(config: unknown, mean: number | null): { suffix: string; hint: string } {
  const longest = getAt(config, ["drafter", "draft_length"]);
  if (typeof longest !== "number") return { suffix: "", hint: "Not speculating: drafter none" };
  if (getAt(config, ["drafter", "draft_length_control"]) !== "measured") {
    return { suffix: `of ${longest + 1}`, hint: `Tokens per verification round, k = ${longest}` };
  }
  if (mean === null) {
    return { suffix: `of up to ${longest + 1}`, hint: `k up to ${longest}, chosen round by round` };
  }
  const hint = `k = ${formatNumber(mean, 2)} on average, at most ${longest}`;
  return { suffix: `of ${formatNumber(mean + 1, 2)}`, hint };
}
