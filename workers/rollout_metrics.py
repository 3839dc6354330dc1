"""What one step's responses say, by catalogue name."""

import torch

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.algo.advantage import informative_groups
from workers.rollout.engine import RolloutResult, SpeculationCounters


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
    }


def speculation_metrics(counters: SpeculationCounters) -> dict[str, float]:
    """Pooled over the step; empty where nothing was speculated, for no measurement is neither 0 nor 1."""
    length = counters.acceptance_length
    if length is None:
        return {}
    draft_length = counters.num_draft_tokens / counters.num_drafts
    positions = range(min(MAX_DRAFT_LENGTH, round(draft_length + 0.5 - 1e-9)))
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


def reward_metrics(rewards_PG: torch.Tensor) -> dict[str, float]:
    """Of the step's rewards, P prompts with G responses each."""
    return {
        "reward/train_mean": rewards_PG.mean().item(),
        "reward/train_std": rewards_PG.std(correction=0).item(),
        "reward/uninformative_group_fraction": 1 - informative_groups(rewards_PG).float().mean().item(),
    }
