import { expect, test } from "vitest";
import { type Example, groupExamples } from "../../src/pages/launch/example-groups.ts";

const example = (name: string, config: object) => ({ name, title: name, description: "", config }) as Example;
const gpus = (num_nodes: number) => ({ resources: { num_nodes, gpus_per_node: 8 } });

test("examples stand with their like, the smallest first", () => {
  const examples = [
    example("giant", gpus(24)),
    example("long", { grpo: { num_steps: 40 } }),
    example("one node", gpus(1)),
    example("draft", { job: "draft_training" }),
    example("short", { grpo: { num_steps: 2 }, resources: { num_nodes: 1, gpus_per_node: 0 } }),
  ];
  const grouped = groupExamples(examples).map(({ title, examples: of }) => [
    title,
    of.map(({ name }) => name),
  ]);
  expect(grouped).toEqual([
    ["Without GPUs", ["short", "long"]],
    ["A draft alone", ["draft"]],
    ["On GPUs", ["one node", "giant"]],
  ]);
});

test("a group that has none is not there", () => {
  expect(groupExamples([example("one node", gpus(1))]).map(({ title }) => title)).toEqual(["On GPUs"]);
});
