const ACRONYMS: Record<string, string> = {
  kl: "KL",
  kv: "KV",
  grpo: "GRPO",
  gpu: "GPU",
  gpus: "GPUs",
  adamw: "AdamW",
};

/** Names that do not read well word by word. */
const LABELS: Record<string, string> = {
  top_p: "Top-p",
  top_k: "Top-k",
  min_p: "Min-p",
  train: "Training data",
  share_fraction: "Share",
};

const KINDS: Record<string, string> = {
  eagle3: "EAGLE-3",
  adamw: "AdamW",
  muon: "Muon",
  none: "None (autoregressive)",
  scratch: "From scratch",
  checkpoint: "From a checkpoint",
  bfloat16: "bfloat16",
  float32: "float32",
  ngram: "N-gram",
  mtp: "Multi-token prediction",
  grpo: "GRPO, the whole run",
  draft_training: "Draft training only",
  measured: "Measured, round by round",
  fixed: "Fixed",
  generic: "Generic",
  vllm: "vLLM",
  torch: "PyTorch",
  megatron: "Megatron-core",
  dataset: "A dataset",
  jsonl: "JSONL file",
  parquet: "Parquet file or folder",
  hub: "Hugging Face hub",
  held_out: "Held-out share of the training prompts",
  exact: "Exact text",
  math: "Mathematical equality",
  code: "Program and its tests",
  python: "A function of your own",
  zero: "No reward",
  scored: "Scored as any other",
  penalised: "A penalty that grows",
  policy: "The policy's own",
  plain: "None, plain text",
};

/** Kinds whose word says something else of another setting. */
const KINDS_OF_NAME: Record<string, Record<string, string>> = {
  recompute: { none: "None", selective: "Attention", full: "Whole layers" },
};

const GROUPS: Record<string, string> = {
  grpo: "GRPO",
  probe: "Speedup probe",
  samples: "Stored samples",
  checkpoint: "Checkpoints",
};

/** Unit by the last word of a name; a name may have one of its own. */
const UNIT_OF_SUFFIX: Record<string, string> = {
  s: "s",
  ms: "ms",
  tokens: "tokens",
  steps: "steps",
  bytes: "bytes",
  gib: "GiB",
  mib: "MiB",
  nats: "nats",
};
const UNIT_OF_NAME: Record<string, string> = {
  draft_length: "tokens",
  unroll_length: "tokens",
  draft_vocabulary_size: "tokens",
  top_k: "tokens",
};

/** The unit of a setting's value; a count's is its label already. */
export function unitOf(key: string): string {
  if (key.startsWith("num_")) return "";
  return UNIT_OF_NAME[key] ?? UNIT_OF_SUFFIX[key.split("_").at(-1) ?? ""] ?? "";
}

/** "num_prompts_per_step" -> "Prompts per step"; the unit at the end goes where the value is. */
export function labelOf(key: string): string {
  if (LABELS[key]) return LABELS[key];
  const words = key.replace(/^num_/, "").split("_");
  const hasUnit = words.length > 1 && words.at(-1) === unitOf(key).toLowerCase() && !/^(max|min)_/.test(key);
  const kept = hasUnit ? words.slice(0, -1) : words;
  const text = kept.map((word) => ACRONYMS[word] ?? word).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function groupTitleOf(key: string): string {
  return GROUPS[key] ?? labelOf(key);
}

/** What a kind is called; some are called otherwise as values of a setting of this name. */
export function kindLabelOf(kind: string, name = ""): string {
  return (
    KINDS_OF_NAME[name]?.[kind] ??
    KINDS[kind] ??
    kind.charAt(0).toUpperCase() + kind.slice(1).replaceAll("_", " ")
  );
}

/** Parts that most launches look at, in the order of their questions: what on what, drafted for how, where. */
const PARTS_IN_FRONT = ["task", "policy", "drafter", "rollout", "grpo", "trainer", "resources"];

/** Whether a part is always unfolded; the others are a line each. */
export function isInFront(part: string): boolean {
  return PARTS_IN_FRONT.includes(part);
}

/** Sorts parts: those in front by their order, then the others as they come. */
export function byImportance(one: { key: string }, other: { key: string }): number {
  const place = ({ key }: { key: string }) => PARTS_IN_FRONT.indexOf(key) + 1 || Number.POSITIVE_INFINITY;
  return place(one) === place(other) ? 0 : place(one) - place(other);
}

/**
 * Settings that most launches look at; the others of their group are folded under "Advanced". What must be given is
 * always in sight.
 */
const ESSENTIAL = new Set([
  "task/num_terms",
  "task/max_term",
  "task/train",
  "task/validation",
  "task/validation/share_fraction",
  "task/reward",
  "task/max_prompt_tokens",
  "policy/num_layers",
  "policy/hidden_size",
  "policy/path",
  "policy/model",
  "rollout/num_engines",
  "rollout/max_batch_size",
  "rollout/tensor_parallel_size",
  "rollout/max_new_tokens",
  "rollout/temperature",
  "drafter/draft_length",
  "drafter/draft_length_control",
  "drafter/path",
  "grpo/num_steps",
  "grpo/num_prompts_per_step",
  "grpo/num_generations_per_prompt",
  "trainer/optimizer",
  "trainer/optimizer/learning_rate",
  "trainer/optimizer/learning_rate_matrices",
  "trainer/optimizer/learning_rate_others",
  "trainer/num_processes",
  "trainer/tensor_parallel_size",
  "trainer/pipeline_parallel_size",
  "trainer/expert_parallel_size",
  "resources/num_nodes",
  "resources/gpus_per_node",
  "resources/gpu_memory_gib",
  "job",
  "seed",
]);

/** Parts of the configuration that training a draft alone reads. */
const PARTS_OF_DRAFT_TRAINING = new Set([
  "task",
  "policy",
  "rollout",
  "drafter",
  "trainer",
  "weight_sync",
  "resources",
]);

/** Whether a job reads a part of its configuration. */
export function isPartOfJob(job: unknown, part: string): boolean {
  return job !== "draft_training" || PARTS_OF_DRAFT_TRAINING.has(part);
}

export function isEssential(path: string[]): boolean {
  return ESSENTIAL.has(path.join("/"));
}
