import { formatCount } from "../../format/number.ts";
import { getAt } from "../../forms/values.ts";
import { kindLabelOf } from "../../forms/words.ts";

/** What a resolved configuration will run, in a few words each: model, drafter, engine and trainer, amount of work. */
export function summarize(config: unknown): string[] {
  const at = (path: string) => getAt(config, path.split("/"));
  return [policy(at), drafter(at), backends(at), work(at)];
}

type Reader = (path: string) => unknown;

function policy(at: Reader): string {
  if (at("policy/kind") === "checkpoint")
    return String(at("policy/path")).split("/").filter(Boolean).at(-1) ?? "";
  return `${at("policy/num_layers")} layers × ${at("policy/hidden_size")}`;
}

function drafter(at: Reader): string {
  const kind = String(at("drafter/kind"));
  if (kind === "none") return "no speculation";
  const k = at("drafter/draft_length");
  const isMeasured = at("drafter/draft_length_control") === "measured";
  return `${kindLabelOf(kind)}, ${isMeasured ? `k up to ${k}, measured` : `k = ${k}`}`;
}

/** "vLLM and Megatron-core", "PyTorch". */
function backends(at: Reader): string {
  const kinds = ["rollout/kind", "trainer/kind"].map((path) => kindLabelOf(String(at(path))));
  return [...new Set(kinds)].join(" and ");
}

function work(at: Reader): string {
  if (at("job") === "draft_training") {
    const [rollouts, steps] = ["num_rollouts", "num_steps"].map((name) =>
      Number(at(`drafter/pretraining/${name}`)),
    );
    return `draft training on ${formatCount(rollouts ?? 0)} rollouts, ${formatCount(steps ?? 0)} steps`;
  }
  const [steps, prompts, each] = ["num_steps", "num_prompts_per_step", "num_generations_per_prompt"].map(
    (name) => Number(at(`grpo/${name}`)),
  );
  return `${formatCount(steps ?? 0)} steps of ${formatCount(prompts ?? 0)} × ${formatCount(each ?? 0)} responses`;
}
