import pytest
import torch

from contract.telemetry.metrics import MAX_DRAFT_LENGTH, METRICS
from workers.rollout.engine import Completion, EngineLoad, RolloutResult, RoundCost, SpeculationCounters
from workers.rollout_metrics import (
    controller_metrics,
    load_metrics,
    reward_metrics,
    rollout_metrics,
    speculation_metrics,
)


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


def test_positions_beyond_the_mean_length_are_told_where_the_length_varies():
    metrics = speculation_metrics(SpeculationCounters(10, 15, 9, [6, 2, 0, 1] + [0] * (MAX_DRAFT_LENGTH - 4)))
    positions = [name for name in metrics if "position" in name]
    assert len(positions) == 4
    assert metrics["rollout/acceptance_length_tokens"] == pytest.approx(1 + sum(metrics[name] for name in positions))


def test_no_speculation_is_no_measurement():
    assert speculation_metrics(SpeculationCounters()) == {}
    assert controller_metrics([]) == {}


def test_hand_computed_rounds_of_two_engines():
    costs = [
        RoundCost(32, 0, 6, 0.60, 0.66),
        RoundCost(32, 4, 2, 0.30, 0.28),
        RoundCost(1, 8, 2, 0.10, 0.06),
    ]
    metrics = controller_metrics(costs)
    assert metrics.keys() <= METRICS.keys()
    assert metrics["controller/draft_length_mean_tokens"] == pytest.approx(2.4)
    assert metrics["controller/draft_length_sequences_32_tokens"] == pytest.approx(1.0)
    assert metrics["controller/draft_length_sequences_1_tokens"] == pytest.approx(8.0)
    assert "controller/draft_length_sequences_2_tokens" not in metrics
    assert metrics["controller/speculated_round_fraction"] == pytest.approx(0.4)
    assert metrics["controller/round_s"] == pytest.approx(0.1)
    assert metrics["controller/predicted_round_s"] == pytest.approx(0.1)


def test_without_a_controller_nothing_is_predicted():
    assert "controller/predicted_round_s" not in controller_metrics([RoundCost(4, 3, 5, 0.5, 0.0)])


def test_rewards():
    metrics = reward_metrics(torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]))
    assert metrics["reward/train_mean"] == 0.5
    assert metrics["reward/train_std"] == 0.5
    assert metrics["reward/uninformative_group_fraction"] == 0.5
    assert metrics.keys() <= METRICS.keys()


def test_loads_of_engines_are_pooled_by_steps() -> None:
    one, other = EngineLoad(1, 0.5, 0.5, 8, 4), EngineLoad(3, 0.6, 0.3, 12, 0)
    assert load_metrics(one + other) == {
        "engine/kv_cache_use_fraction": pytest.approx(1.1 / 4),
        "engine/kv_cache_use_max_fraction": 0.5,
        "engine/num_running_requests": 5,
        "engine/num_waiting_requests": 1,
    }
    assert load_metrics(EngineLoad()) == {}
