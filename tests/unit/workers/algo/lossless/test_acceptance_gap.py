import pytest
import torch

from workers.algo.lossless.acceptance_gap import acceptance_gap, acceptance_probs


def test_hand_computed_gap():
    chances = acceptance_probs(torch.tensor([0.2, 0.9, 0.3]), torch.tensor([0.4, 0.6, 1.0]))
    assert chances.tolist() == pytest.approx([0.5, 1.0, 0.3])
    gap = acceptance_gap(torch.tensor([True, True, True]), chances)
    assert gap.num_tested == 3
    assert gap.gap_sum == pytest.approx(0.5 + 0.0 + 0.7)
    assert gap.gap == pytest.approx(0.4)
    assert gap.variance == pytest.approx(0.25 + 0.21)
    assert gap.z == pytest.approx(1.2 / 0.46**0.5)


def test_chances_are_finite_where_a_probability_rounds_to_nothing():
    assert acceptance_probs(torch.tensor([0.0, 0.2]), torch.tensor([0.0, 0.0])).tolist() == [0.0, 1.0]


def test_nothing_tested_is_no_score():
    gap = acceptance_gap(torch.zeros(0, dtype=torch.bool), torch.zeros(0))
    assert (gap.num_tested, gap.gap, gap.z) == (0, 0.0, None)
    assert acceptance_gap(torch.tensor([True]), torch.tensor([1.0])).z is None


def test_the_score_of_an_exact_rule_is_standard_normal():
    generator = torch.Generator().manual_seed(0)
    chances = torch.rand(2000, generator=generator, dtype=torch.float64) ** 0.5
    scores = torch.tensor(
        [acceptance_gap(torch.rand(2000, generator=generator) < chances, chances).z for _ in range(400)]
    )
    assert abs(scores.mean()) < 4 / 20
    assert scores.std().item() == pytest.approx(1, abs=0.15)
