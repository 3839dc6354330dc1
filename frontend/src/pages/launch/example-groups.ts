import type { Schemas } from "../../api/client.ts";
import { getAt } from "../../forms/values.ts";

export type Example = Schemas["ConfigExample"];

export interface ExampleGroup {
  title: string;
  examples: Example[];
}

/** Ready configurations by what they need, those that need least first. */
export function groupExamples(examples: Example[]): ExampleGroup[] {
  const bySize = examples.toSorted((one, other) => {
    const [left, right] = [sizeOf(one), sizeOf(other)];
    return left.gpus - right.gpus || left.steps - right.steps;
  });
  return ["Without GPUs", "A draft alone", "On GPUs"]
    .map((title) => ({ title, examples: bySize.filter((example) => titleOf(example) === title) }))
    .filter((group) => group.examples.length > 0);
}

function titleOf(example: Example): string {
  if (sizeOf(example).gpus > 0) return "On GPUs";
  return getAt(example.config, ["job"]) === "draft_training" ? "A draft alone" : "Without GPUs";
}

/** GPUs and steps of the whole run. */
function sizeOf({ config }: Example): { gpus: number; steps: number } {
  const at = (...path: string[]) => Number(getAt(config, path) ?? 0);
  return {
    gpus: at("resources", "num_nodes") * at("resources", "gpus_per_node"),
    steps: at("grpo", "num_steps"),
  };
}
