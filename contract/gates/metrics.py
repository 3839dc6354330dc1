"""What assertions are about: short names of metrics, and how each is summed up where the assertion does not say."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, get_args

from contract.telemetry.metrics import METRICS, Metric
from contract.telemetry.stages import STEP_STAGES

Aggregate = Literal["mean", "median", "min", "max", "last", "p95"]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "reward": "reward/train_mean",
        "validation_accuracy": "validation/accuracy_fraction",
        "acceptance_length": "rollout/acceptance_length_tokens",
        "acceptance_rate": "rollout/acceptance_rate_fraction",
        "draft_length": "rollout/draft_length_tokens",
        "generation_speedup": "speedup/generation_ratio",
        "step_speedup": "speedup/step_ratio",
        "lossless_ks": "lossless/run_ks_distance",
        "lossless_evidence": "lossless/log10_e_value",
        "tokens_per_second": "rollout/tokens_per_second",
        "response_length": "rollout/response_length_mean_tokens",
        "step_time": "time/step_s",
        **{f"{stage.value}_time": f"time/{stage.value}_s" for stage in STEP_STAGES},
        "loss": "policy/loss",
        "entropy": "policy/entropy_nats",
        "grad_norm": "policy/grad_norm",
        "kl": "policy/kl_reference_nats",
    }
)
DRAFT_ALIASES: Mapping[str, str] = MappingProxyType(
    {"acceptance_length": "draft_pretraining/held_out_acceptance_length_tokens"}
)
"""What a short name means for a run that trains a draft alone."""

_DEFAULTS: Mapping[str, Aggregate] = MappingProxyType(
    {
        "lossless/run_ks_distance": "last",
        "lossless/log10_e_value": "max",
        "lossless/pit_log10_e_value": "max",
        "lossless/ordered_pit_log10_e_value": "max",
        "lossless/acceptance_log10_e_value": "max",
        "progress/num_tokens_total": "last",
        "progress/elapsed_s": "last",
    }
)
"""Metrics that count the whole run up to each step: the mean over steps would say nothing."""

_ROUNDS, _DRAFTED = "rollout/num_drafts", "rollout/num_draft_tokens"
_WEIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "rollout/acceptance_length_tokens": _ROUNDS,
        "rollout/draft_length_tokens": _ROUNDS,
        "rollout/acceptance_rate_fraction": _DRAFTED,
        "rollout/tokens_per_second": "time/generation_s",
    }
)


def resolve(name: str, job: str = "grpo") -> Metric | None:
    """The metric that a short name or a catalogue's name means for a run that does such a job."""
    short = DRAFT_ALIASES if job == "draft_training" else {}
    return METRICS.get(short.get(name) or ALIASES.get(name, name))


def near(name: str) -> list[str]:
    """Names that were perhaps meant, the nearest first."""
    lower = name.lower()
    known = METRICS if "/" in name else ALIASES
    return get_close_matches(lower, known, n=3) or get_close_matches(lower, [*ALIASES, *METRICS], n=3)


def default_aggregate(metric: Metric) -> Aggregate:
    return _DEFAULTS.get(metric.name, "mean")


def weight_of(metric: Metric) -> str | None:
    """The metric that counts what a step's ratio is a ratio over, so that steps can be pooled: numerators and
    denominators of all steps added up before dividing. None where it is not reported, and every step counts alike."""
    if metric.name.startswith("rollout/acceptance_position_"):
        return _ROUNDS
    return _WEIGHTS.get(metric.name)
