import math

import pytest
import torch
from scipy import stats

from workers.algo.lossless.ks import binned_distance, kolmogorov_survival, ks_uniform


def uniform(num_tokens, seed=5):
    return torch.rand(num_tokens, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("num_tokens", [20, 500, 15_000])
@pytest.mark.parametrize("shift", [0.0, 0.02])
def test_ks_agrees_with_scipy(num_tokens, shift):
    u = (uniform(num_tokens) + shift).clamp(0, 1)
    ours, theirs = ks_uniform(u), stats.kstest(u.numpy(), "uniform", mode="exact")
    assert ours.distance == pytest.approx(theirs.statistic, abs=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=0.05, abs=1e-3)
    assert ours.num_tokens == num_tokens


@pytest.mark.parametrize("x", [0.01, 0.2, 0.5, 0.9, 1.17, 1.19, 1.5, 3.0, 12.0])
def test_kolmogorov_survival_agrees_with_scipy(x):
    assert kolmogorov_survival(x) == pytest.approx(stats.kstwobign.sf(x), rel=1e-9, abs=1e-15)


def test_what_cannot_be_judged_does_not_count_as_judged():
    result = ks_uniform(torch.full((20,), math.nan))
    assert math.isnan(result.distance)
    assert math.isnan(result.p_value)


def test_no_token_is_an_error():
    with pytest.raises(ValueError, match="at least one token"):
        ks_uniform(torch.empty(0))


def test_hand_computed_binned_distance():
    """Counts 3, 1, 0, 0: shares up to the edges are 0.75, 1, 1, 1 where 0.25, 0.5, 0.75, 1 are due."""
    assert binned_distance(torch.tensor([[3, 1, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]])).tolist() == [0.5, 0.0, 0.0]


def test_binning_loses_less_than_a_bin():
    for seed in range(20):
        u = uniform(400, seed) ** 1.1
        binned = binned_distance(torch.histc(u, 32, 0, 1)).item()
        assert binned <= ks_uniform(u).distance + 1e-12
        assert binned > ks_uniform(u).distance - 1 / 32
