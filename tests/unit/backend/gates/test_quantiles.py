import random

import numpy as np
import pytest
from scipy import stats

from backend.gates.quantiles import _ranks, quantile, quantile_interval


def test_ten_values_by_hand():
    """Of 10, the median lies between the 2nd and the 9th with 97.9 %: P(B <= 1) = 11 / 1024."""
    ordered = [float(i) for i in range(1, 11)]
    assert quantile(ordered, 0.5) == 5.5
    assert quantile(ordered, 0.95) == pytest.approx(9.55)
    assert quantile_interval(ordered, 0.5, 0.95, 10) == (2, 9)


def test_too_few_values_leave_an_end_open():
    ordered = [float(i) for i in range(1, 11)]
    assert quantile_interval(ordered, 0.95, 0.95, 10) == (8, None)
    assert quantile_interval(ordered[:5], 0.5, 0.95, 5) == (None, None)
    assert quantile_interval(ordered, 0.5, 0.95, 0.7) == (None, None)


def test_one_value():
    assert quantile([4.0], 0.95) == 4
    assert quantile_interval([4.0], 0.5, 0.95, 1) == (None, None)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.95])
def test_quantiles_are_those_of_another_implementation(level):
    values = sorted(random.Random(1).gauss(0, 1) for _ in range(37))
    assert quantile(values, level) == pytest.approx(np.quantile(values, level))


@pytest.mark.parametrize("m", [1, 2, 6, 20, 71, 72, 500])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_ranks_against_a_slow_search(m, level):
    below = stats.binom(m, level)
    lows = [k for k in range(1, m + 1) if below.cdf(k - 1) <= 0.025]
    highs = [k for k in range(1, m + 1) if below.sf(k - 1) <= 0.025]
    assert _ranks(m, level, 0.025) == (max(lows, default=0), min(highs, default=m + 1))


def test_many_values_are_counted_by_the_normal_distribution():
    """Where both can be had they agree but for a rank or two."""
    exact, near = _ranks(2000, 0.5, 0.025), _ranks(2001, 0.5, 0.025)
    assert exact == pytest.approx(near, abs=2)


def test_fewer_effective_values_are_a_wider_interval():
    ordered = [float(i) for i in range(200)]
    low, high = quantile_interval(ordered, 0.5, 0.95, 200)
    wider_low, wider_high = quantile_interval(ordered, 0.5, 0.95, 20)
    assert wider_low < low < high < wider_high


@pytest.mark.parametrize(("level", "truth"), [(0.5, 0.0), (0.95, 1.6449)])
def test_the_interval_holds_the_truth_as_often_as_it_says(level, truth):
    generator, covered = random.Random(7), 0
    for _ in range(500):
        ordered = sorted(generator.gauss(0, 1) for _ in range(100))
        low, high = quantile_interval(ordered, level, 0.95, 100)
        covered += low <= truth <= high
    assert 0.93 <= covered / 500 <= 0.99
