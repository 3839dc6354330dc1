"""Tokens per second and use of the peak, by hand and against a sum over every position."""

import itertools

import pytest

from contract.sizing.architecture import Architecture
from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import Stage
from workers.clock import StageClock
from workers.rollout.engine import Completion
from workers.throughput import Sizing, sequence_flops, throughput_metrics

SHAPE = Architecture(2, 32, 48, 4, 2, 16, 64, is_tied=False)


@pytest.mark.parametrize(("num_tokens", "first"), [(1, 0), (7, 0), (5, 11)])
def test_a_sequence_is_the_sum_of_its_tokens(num_tokens: int, first: int) -> None:
    slow = sum(SHAPE.forward_flops(first + i + 1) for i in range(num_tokens))
    assert sequence_flops(SHAPE, num_tokens, first) == pytest.approx(slow)


def _metrics(sizing: Sizing) -> dict[str, float]:
    seconds = itertools.count(0, 2)  # each look at the clock is two seconds after the last
    clock = StageClock(lambda _: None, now=lambda: float(next(seconds)))
    for stage in (Stage.GENERATION, Stage.LOGPROB, Stage.TRAIN):
        with clock.stage(stage):
            pass
    completions = [Completion(0, [1, 2, 3], [0.0] * 3, False), Completion(1, [1], [0.0], False)]
    return throughput_metrics(sizing, [4, 6], completions, clock)


def test_by_hand() -> None:
    metrics = _metrics(Sizing(SHAPE, num_generating=2, num_training=1, is_shared=False, peak_tflops=1e-6))
    assert metrics["throughput/generation_tokens_per_device_second"] == 4 / (2 * 2)
    assert metrics["throughput/train_tokens_per_device_second"] == (7 + 7) / 2
    assert metrics["throughput/step_tokens_per_device_second"] == pytest.approx(4 / (14 * 3))
    forward = 2 * sequence_flops(SHAPE, 7)
    assert metrics["throughput/logprob_tflops_per_device"] == pytest.approx(forward / 2 / 1e12)
    assert metrics["throughput/train_mfu_fraction"] == pytest.approx(3 * forward / 2 / 1e12 / 1e-6)
    assert metrics["throughput/generation_tflops_per_device"] == pytest.approx(forward / 4 / 1e12)
    assert set(metrics) <= METRICS.keys()


def test_shared_devices_are_counted_once_and_an_unknown_peak_gives_no_share() -> None:
    metrics = _metrics(Sizing(SHAPE, num_generating=2, num_training=2, is_shared=True, peak_tflops=None))
    assert metrics["throughput/step_tokens_per_device_second"] == pytest.approx(4 / (14 * 2))
    assert not [name for name in metrics if name.endswith("mfu_fraction")]
