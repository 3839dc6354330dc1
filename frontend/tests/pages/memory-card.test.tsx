import { expect, test } from "vitest";
import { summarizeMemory } from "../../src/pages/launch/memory-card.tsx";

type Memory = NonNullable<Parameters<typeof summarizeMemory>[0]>;

const TRAINING: Memory["devices"][number] = {
  role: "training",
  num_devices: 8,
  parts: [{ name: "weights", gib: 20.4 }],
  total_gib: 61.32,
};
const GENERATION: Memory["devices"][number] = {
  ...TRAINING,
  role: "generation",
  num_devices: 4,
  total_gib: 48,
};

test("the bar names all GPUs and the fullest of them", () => {
  const memory: Memory = { unit: "GPU", devices: [TRAINING, GENERATION], capacity_gib: 80 };
  expect(summarizeMemory(memory)).toEqual(["12 GPUs, about 61.3 of 80.0 GiB each"]);
});

test("a capacity that is not known is not named", () => {
  const memory: Memory = { unit: "GPU", devices: [{ ...GENERATION, num_devices: 1 }], capacity_gib: null };
  expect(summarizeMemory(memory)).toEqual(["1 GPU, about 48.0 GiB each"]);
});

test("a run without GPUs, or of unknown shape, says nothing in the bar", () => {
  expect(summarizeMemory(null)).toEqual([]);
  expect(summarizeMemory({ unit: "process", devices: [TRAINING], capacity_gib: null })).toEqual([]);
});
