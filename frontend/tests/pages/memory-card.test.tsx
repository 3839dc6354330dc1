// @vitest-environment happy-dom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { MemoryCard, memoryInWords, summarizeMemory } from "../../src/pages/launch/memory-card.tsx";

afterEach(cleanup);

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

test("little memory is told in MiB", () => {
  expect([0.0112, 0.5, 61.32].map(memoryInWords)).toEqual(["11.5 MiB", "0.500 GiB", "61.3 GiB"]);
});

test("the card names each kind of device with its parts, and whether it is of the settings as they are", () => {
  const memory: Memory = { unit: "process", devices: [TRAINING, GENERATION], capacity_gib: null };
  const { rerender } = render(<MemoryCard memory={memory} isOutdated={false} />);
  expect(screen.getByText("Training, 8 processes")).toBeTruthy();
  expect(screen.getByText("48.0 GiB each")).toBeTruthy();
  expect(screen.getAllByRole("row")[0]?.textContent).toBe("weights20.4 GiB");
  expect(screen.queryByText(/before they had problems/)).toBeNull();
  rerender(<MemoryCard memory={memory} isOutdated={true} />);
  expect(screen.getByText(/before they had problems/)).toBeTruthy();
});

test("without an estimate the card says how to get one", () => {
  render(<MemoryCard memory={null} isOutdated={false} />);
  expect(screen.getByText(/Policy, Model/)).toBeTruthy();
});
