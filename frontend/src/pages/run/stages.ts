/** What a run's stage means, in words; the keys are those of contract/telemetry/stages.py. */
const STAGES: Record<string, string> = {
  start: "Starting the worker",
  warm_up: "Warming up the policy",
  draft_pretraining: "Training the draft",
  data: "Drawing prompts",
  prepare: "Syncing weights",
  generation: "Generating",
  reward: "Checking answers",
  logprob: "Recomputing log-probabilities",
  train: "Training the policy",
  draft: "Updating the draft",
  probe: "Measuring the speedup",
  validation: "Validating",
  checkpoint: "Saving a checkpoint",
};

export function stageWords(stage: string): string {
  return STAGES[stage] ?? stage.replaceAll("_", " ");
}
