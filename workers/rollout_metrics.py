"""What one step's responses say, by catalogue name."""

import math
from collections.abc import Sequence

import torch

from contract.telemetry.metrics import MAX_DRAFT_LENGTH, MAX_SEQUENCES_EXPONENT
from workers.algo.advantage import informative_groups
from workers.rollout.engine import EngineLoad, RolloutResult, RoundCost, SpeculationCounters


def rollout_metrics(result: RolloutResult, generation_s: float) -> dict[str, float]:
    """Lengths and speed; generation_s is the wall time of the stage."""
    lengths = [len(completion.token_ids) for completion in result.completions]
    return {
        "rollout/num_generated_tokens": sum(lengths),
        "rollout/tokens_per_second": sum(lengths) / generation_s,
        "rollout/response_length_mean_tokens": sum(lengths) / len(lengths),
        "rollout/response_length_max_tokens": max(lengths),
        "rollout/response_length_min_tokens": min(lengths),
        "rollout/truncated_fraction": sum(c.is_truncated for c in result.completions) / len(lengths),
        **speculation_metrics(result.counters),
        **controller_metrics(result.round_costs),
        **load_metrics(result.load),
    }


def load_metrics(load: EngineLoad) -> dict[str, float]:
    """Means over the steps of all engines; empty where none has a queue."""
    if not load.num_steps:
        return {}
    return {
        "engine/kv_cache_use_fraction": load.kv_cache_use_sum / load.num_steps,
        "engine/kv_cache_use_max_fraction": load.kv_cache_use_max,
        "engine/num_running_requests": load.num_running_sum / load.num_steps,
        "engine/num_waiting_requests": load.num_waiting_sum / load.num_steps,
    }


def speculation_metrics(counters: SpeculationCounters) -> dict[str, float]:
    """Pooled over the step; empty where nothing was speculated, for no measurement is neither 0 nor 1."""
    length = counters.acceptance_length
    if length is None:
        return {}
    draft_length = counters.num_draft_tokens / counters.num_drafts
    # Where the length varies some rounds draft beyond its mean: every position at which something was accepted counts.
    accepted = max((i + 1 for i, count in enumerate(counters.accepted_at_position) if count), default=0)
    positions = range(min(MAX_DRAFT_LENGTH, max(math.ceil(draft_length - 1e-9), accepted)))
    return {
        "rollout/acceptance_length_tokens": length,
        "rollout/acceptance_rate_fraction": counters.num_accepted_tokens / counters.num_draft_tokens,
        "rollout/draft_length_tokens": draft_length,
        "rollout/num_drafts": counters.num_drafts,
        "rollout/num_draft_tokens": counters.num_draft_tokens,
        "rollout/num_accepted_tokens": counters.num_accepted_tokens,
        **{
            f"rollout/acceptance_position_{i + 1}_fraction": counters.accepted_at_position[i] / counters.num_drafts
            for i in positions
        },
    }


def controller_metrics(costs: Sequence[RoundCost]) -> dict[str, float]:
    """Draft lengths and round times, pooled over engines; empty where nothing could have been speculated."""
    num_rounds = sum(cost.num_rounds for cost in costs)
    if not num_rounds:
        return {}
    metrics = {
        "controller/draft_length_mean_tokens": _mean_length(costs),
        "controller/speculated_round_fraction": sum(c.num_rounds for c in costs if c.draft_length) / num_rounds,
        "controller/round_s": sum(cost.measured_s for cost in costs) / num_rounds,
    }
    if predicted_s := sum(cost.predicted_s for cost in costs):
        metrics["controller/predicted_round_s"] = predicted_s / num_rounds
    for exponent in range(MAX_SEQUENCES_EXPONENT + 1):
        if some := [cost for cost in costs if cost.num_sequences == 2**exponent]:
            metrics[f"controller/draft_length_sequences_{2**exponent}_tokens"] = _mean_length(some)
    return metrics


def _mean_length(costs: Sequence[RoundCost]) -> float:
    return sum(cost.draft_length * cost.num_rounds for cost in costs) / sum(cost.num_rounds for cost in costs)


def reward_metrics(rewards_PG: torch.Tensor) -> dict[str, float]:
    """Of the step's rewards, P prompts with G responses each."""
    return {
        "reward/train_mean": rewards_PG.mean().item(),
        "reward/train_std": rewards_PG.std(correction=0).item(),
        "reward/uninformative_group_fraction": 1 - informative_groups(rewards_PG).float().mean().item(),
    }
