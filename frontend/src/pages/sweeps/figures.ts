import type { Schemas } from "../../api/client.ts";

export type BestBy = Schemas["SweepBest"]["metric"];

/** The figures by which the best run of a sweep is told: more is better of each. */
export const FIGURES: Record<BestBy, { words: string; unit: string }> = {
  reward: { words: "reward", unit: "" },
  acceptance_length: { words: "acceptance length", unit: " tokens" },
  generation_speedup: { words: "speedup of generation", unit: "×" },
  validation_accuracy: { words: "validation accuracy", unit: "" },
};
