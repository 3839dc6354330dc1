import type { RunRead, Schemas } from "../../api/client.ts";
import { getAt } from "../../forms/values.ts";

type FigureRead = Schemas["FigureRead"];
type Configured = Pick<RunRead, "job" | "config" | "latest" | "is_ended">;

const OF_STEPS = /^(?!warm_up\/|draft_pretraining\/)/;
const OF_SPECULATION =
  /^(draft|draft_pretraining|speedup)\/|^rollout\/(acceptance|draft_length)|^controller\/(draft_length|speculated)|^lossless\/(ordered|acceptance|num_tested)/;
const OF_DRAFT_TRAINING = /^(draft|draft_pretraining)\//;
const OF_WARM_UP = /^warm_up\//;
/** Comparing texts cannot fail. */
const OF_SCORERS = /^reward\/num_failures/;
const OF_PROBE = /^speedup\//;
const OF_QUEUES = /^engine\//;
const OF_GPUS = /^hardware\/gpu_|^throughput\/.*_mfu_/;

/**
 * The charts that show something or will: not those whose every series the configuration leaves out, and of a run that
 * has ended only what was measured.
 */
export function expectedCharts(figures: FigureRead[], run: Configured): FigureRead[] {
  const absent = absentSeries(run);
  const isAwaited = (name: string) => !run.is_ended && !absent.some((pattern) => pattern.test(name));
  const comes = (name: string) => name in run.latest || isAwaited(name);
  return figures.filter(({ series }) => series.some(comes));
}

function absentSeries({ job, config }: Configured): RegExp[] {
  const at = (path: string) => getAt(config, path.split("/"));
  const drafter = at("drafter/kind");
  return [
    job === "draft_training" && OF_STEPS,
    drafter === "none" && OF_SPECULATION,
    (drafter === "ngram" || drafter === "suffix") && OF_DRAFT_TRAINING,
    at("policy/kind") === "checkpoint" && OF_WARM_UP,
    (at("task/kind") !== "dataset" || at("task/reward/kind") === "exact") && OF_SCORERS,
    at("probe/interval_steps") === 0 && OF_PROBE,
    !at("resources/gpus_per_node") && OF_GPUS,
    at("rollout/kind") !== "vllm" && OF_QUEUES,
  ].filter((pattern) => pattern !== false);
}
