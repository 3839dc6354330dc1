import itertools
import math

import pytest
import torch
from scipy.special import gammaln

from workers.algo.lossless import evidence
from workers.algo.lossless.evidence import log_bin_evidence, log_tilt_evidence, log_tilts


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def slow_dirichlet(counts, concentration):
    """One value after the other, each predicted by the counts before it."""
    num_bins, seen, log_ratio = len(counts), [0.0] * len(counts), 0.0
    for index, count in enumerate(counts):
        for _ in range(int(count)):
            predicted = (concentration + seen[index]) / (num_bins * concentration + sum(seen))
            log_ratio += math.log(predicted * num_bins)
            seen[index] += 1
    return log_ratio


def test_hand_computed_bins(monkeypatch):
    """Two bins, concentration 1: the chances of counts (2, 0) are 1/2 * 2/3 against 1/4, those of (1, 1) 1/6."""
    monkeypatch.setattr(evidence, "_CONCENTRATIONS", (1.0,))
    monkeypatch.setattr(evidence, "_COARSENESS", (1,))
    ratios = log_bin_evidence(torch.tensor([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])).exp()
    assert ratios.tolist() == pytest.approx([4 / 3, 2 / 3, 1])


def test_bins_are_predicted_one_after_the_other():
    counts = torch.randint(0, 9, (32,), generator=generator()).double()
    grouped = counts.unflatten(0, (4, 8)).sum(1)
    slow = [slow_dirichlet(bins.tolist(), c) for bins in (counts, grouped) for c in (3.0, 30.0, 300.0, 3000.0)]
    assert log_bin_evidence(counts).item() == pytest.approx(torch.tensor(slow).logsumexp(0).item() - math.log(8))


def test_the_ratio_of_bins_has_expectation_one(monkeypatch):
    """Over all strings of five values in four bins, each of probability 4^-5."""
    monkeypatch.setattr(evidence, "_COARSENESS", (1, 2))
    strings = itertools.product(range(4), repeat=5)
    counts = torch.tensor([[string.count(k) for k in range(4)] for string in strings]).double()
    assert log_bin_evidence(counts).exp().mean().item() == pytest.approx(1)


def test_large_counts_stay_exact():
    counts = torch.full((32,), 3.0e7, dtype=torch.float64)
    n, a = counts.sum().item(), 3000.0
    exact = gammaln(32 * a) - gammaln(32 * a + n) + 32 * (gammaln(a + 3e7) - gammaln(a)) + n * math.log(32)
    assert evidence._dirichlet_multinomial(counts, a).item() == pytest.approx(exact, abs=1e-3)


def test_hand_computed_tilts(monkeypatch):
    """Odds of 1 to 1 and of 1 to 3, tripled: chances of 3/4 and 1/2 in place of 1/2 and 1/4."""
    monkeypatch.setattr(evidence, "TILTS_G", torch.tensor([math.log(3)], dtype=torch.float64))
    chances = torch.tensor([0.5, 0.25], dtype=torch.float64)
    accepted, mixed = (log_tilts(torch.tensor(a), chances).exp().item() for a in ([True, True], [True, False]))
    assert accepted == pytest.approx((3 / 4) / (1 / 2) * (1 / 2) / (1 / 4))
    assert mixed == pytest.approx((3 / 4) / (1 / 2) * (1 / 2) / (3 / 4))


def test_the_ratio_of_tilts_has_expectation_one():
    chances = torch.tensor([0.0, 0.2, 0.7, 1.0], dtype=torch.float64)
    mean = 0.0
    for outcome in itertools.product([False, True], repeat=4):
        a = torch.tensor(outcome)
        mean += torch.where(a, chances, 1 - chances).prod() * log_tilt_evidence(log_tilts(a, chances)).exp()
    assert mean.item() == pytest.approx(1)


def test_what_cannot_happen_is_much_evidence_but_not_all():
    ratio = log_tilts(torch.tensor([True, False]), torch.tensor([0.0, 1.0], dtype=torch.float64))
    assert ratio.isfinite().all()
    assert ratio.abs().max() < 4


def test_tilts_add_up_over_steps():
    chances, accepted = torch.rand(50, generator=generator(1)), torch.rand(50, generator=generator(2)) < 0.5
    parts = log_tilts(accepted[:20], chances[:20]) + log_tilts(accepted[20:], chances[20:])
    torch.testing.assert_close(parts, log_tilts(accepted, chances))
