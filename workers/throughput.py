"""Tokens per second and device, and how much of a device's peak a step makes use of.

Model FLOPs are those that the tokens need, however they were computed: a rejected draft, a recomputed activation and
padding count nothing, so that the share of the peak (MFU; Chowdhery et al. 2022, arXiv:2204.02311, appendix B) falls
where work is wasted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contract.sizing.architecture import Architecture
from contract.telemetry.stages import Stage
from workers.clock import StageClock
from workers.rollout.engine import Completion


@dataclass(frozen=True, slots=True)
class Sizing:
    """A policy's shape, and what it is computed on."""

    shape: Architecture
    num_generating: int
    """GPUs of all engines; processes where there are none."""
    num_training: int
    is_shared: bool
    """Both take turns on the same ones."""
    peak_tflops: float | None
    """Of one GPU in bfloat16; None where that is not known."""

    @property
    def num_all(self) -> int:
        together = max if self.is_shared else lambda *counts: sum(counts)
        return together(self.num_generating, self.num_training)


def sequence_flops(shape: Architecture, num_tokens: int, first: int = 0) -> float:
    """Of the forward passes of num_tokens tokens that stand at positions first, first + 1, …, each reading all
    positions up to its own: sum of shape.forward_flops(i + 1)."""
    mean_context = first + (num_tokens + 1) / 2
    return num_tokens * shape.forward_flops(mean_context)


def throughput_metrics(
    sizing: Sizing,
    prompt_lengths: Sequence[int],
    completions: Sequence[Completion],
    clock: StageClock,
) -> dict[str, float]:
    """By catalogue name. prompt_lengths: tokens of each prompt; the engine reads each once for all its responses."""
    pairs = [(prompt_lengths[c.prompt_index], len(c.token_ids)) for c in completions]
    num_responses = sum(response for _, response in pairs)
    num_tokens = num_responses + sum(prompt for prompt, _ in pairs)
    forward = sum(sequence_flops(sizing.shape, prompt + response) for prompt, response in pairs)
    generation = sum(sequence_flops(sizing.shape, length) for length in prompt_lengths)
    generation += sum(sequence_flops(sizing.shape, response, prompt) for prompt, response in pairs)
    metrics: dict[str, float] = {}
    for stage, tokens, flops, count in (
        (Stage.GENERATION, num_responses, generation, sizing.num_generating),
        (Stage.LOGPROB, num_tokens, forward, sizing.num_training),
        (Stage.TRAIN, num_tokens, 3 * forward, sizing.num_training),
    ):
        if device_s := clock.seconds(stage) * count:
            metrics |= _stage(stage.value, tokens / device_s, flops / device_s / 1e12, sizing.peak_tflops)
    metrics["throughput/step_tokens_per_device_second"] = num_responses / (clock.total() * sizing.num_all)
    return metrics


def _stage(stage: str, tokens_per_second: float, tflops: float, peak_tflops: float | None) -> dict[str, float]:
    metrics = {
        f"throughput/{stage}_tokens_per_device_second": tokens_per_second,
        f"throughput/{stage}_tflops_per_device": tflops,
    }
    return metrics | ({f"throughput/{stage}_mfu_fraction": tflops / peak_tflops} if peak_tflops else {})
