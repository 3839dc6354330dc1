import pytest
import torch

from contract.telemetry.metrics import MAX_DRAFT_LENGTH, METRICS
from workers.rollout.engine import Completion, RolloutResult, SpeculationCounters
from workers.rollout_metrics import reward_metrics, rollout_metrics, speculation_metrics


def _counters(num_drafts, k, accepted):
    positions = accepted + [0] * (MAX_DRAFT_LENGTH - len(accepted))
    return SpeculationCounters(num_drafts, num_drafts * k, sum(accepted), positions)


def test_hand_computed_step():
    completions = [Completion(0, [2] * n, [0.0] * n, is_truncated=n == 8) for n in (2, 8, 5)]
    metrics = rollout_metrics(RolloutResult(completions, _counters(10, 3, [9, 6, 3]), 0.5), generation_s=2.0)
    assert metrics.keys() <= METRICS.keys()
    assert metrics["rollout/num_generated_tokens"] == 15
    assert metrics["rollout/tokens_per_second"] == 7.5
    assert metrics["rollout/response_length_mean_tokens"] == 5
    assert metrics["rollout/truncated_fraction"] == pytest.approx(1 / 3)
    assert metrics["rollout/acceptance_length_tokens"] == 2.8
    assert metrics["rollout/acceptance_rate_fraction"] == 0.6
    positions = [metrics[f"rollout/acceptance_position_{i}_fraction"] for i in (1, 2, 3)]
    assert positions == [0.9, 0.6, 0.3]
    assert "rollout/acceptance_position_4_fraction" not in metrics


def test_the_acceptance_length_is_one_plus_its_positions():
    metrics = speculation_metrics(_counters(100, 5, [80, 60, 50, 20, 1]))
    positions = sum(value for name, value in metrics.items() if "position" in name)
    assert metrics["rollout/acceptance_length_tokens"] == pytest.approx(1 + positions)


def test_no_speculation_is_no_measurement():
    assert speculation_metrics(SpeculationCounters()) == {}


def test_rewards():
    metrics = reward_metrics(torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]))
    assert metrics["reward/train_mean"] == 0.5
    assert metrics["reward/train_std"] == 0.5
    assert metrics["reward/uninformative_group_fraction"] == 0.5
    assert metrics.keys() <= METRICS.keys()
