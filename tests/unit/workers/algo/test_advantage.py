import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.algo.advantage import group_advantages, informative_groups


def test_hand_computed_group():
    # mean 0.25, sample variance (3 * 0.0625 + 0.5625) / 3 = 0.25
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    plain = group_advantages(rewards, normalize=False, leave_one_out=False)
    assert plain.tolist() == [[0.75, -0.25, -0.25, -0.25]]
    others = group_advantages(rewards, normalize=False, leave_one_out=True)
    torch.testing.assert_close(others, torch.tensor([[1.0, -1 / 3, -1 / 3, -1 / 3]]))
    normalized = group_advantages(rewards, normalize=True, leave_one_out=False)
    torch.testing.assert_close(normalized, plain / (0.5 + 1e-4))


def test_equal_rewards_teach_exactly_nothing():
    rewards = torch.full((1, 7), 0.1)  # its float mean differs from 0.1
    for normalize in (True, False):
        for leave_one_out in (True, False):
            advantages = group_advantages(rewards, normalize=normalize, leave_one_out=leave_one_out)
            assert advantages.tolist() == [[0.0] * 7]
    assert informative_groups(torch.tensor([[1.0, 1.0], [0.0, 1.0]])).tolist() == [False, True]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 10, width=32), min_size=2, max_size=9), st.booleans(), st.booleans())
def test_agrees_with_a_slow_reference_and_sums_to_zero(rewards, normalize, leave_one_out):
    advantages = group_advantages(
        torch.tensor([rewards], dtype=torch.float64), normalize=normalize, leave_one_out=leave_one_out
    )[0].tolist()
    assert sum(advantages) == pytest.approx(0, abs=1e-6)
    assert advantages == pytest.approx(_slow(rewards, normalize, leave_one_out), abs=1e-6)


def _slow(rewards, normalize, leave_one_out):
    if max(rewards) == min(rewards):
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    deviation = (sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1)) ** 0.5
    result = []
    for index, reward in enumerate(rewards):
        others = rewards[:index] + rewards[index + 1 :]
        baseline = sum(others) / len(others) if leave_one_out else mean
        result.append((reward - baseline) / (deviation + 1e-4 if normalize else 1.0))
    return result


@pytest.mark.parametrize("shape", [(4,), (3, 1)])
def test_refuses_groups_without_a_baseline(shape):
    with pytest.raises(ValueError, match="at least 2 responses"):
        group_advantages(torch.zeros(shape), normalize=True, leave_one_out=False)
