import math
import random

import numpy as np
import pytest
from scipy import stats

from backend.gates.means import correlation, detrended, influences, mean, num_effective, spread


def autoregressive(generator, n, r, trend=0.0):
    """Variance 1 and correlation r between neighbours, around a line that rises by `trend` from end to end."""
    values, value = [], generator.gauss(0, 1)
    for i in range(n):
        values.append(value + trend * (i / (n - 1) - 0.5))
        value = r * value + math.sqrt(1 - r * r) * generator.gauss(0, 1)
    return values


def slow_half_width(errors, confidence):
    """The same formula with matrices: a regression on (1, step), and the variance of a mean of n_eff values."""
    n = len(errors)
    design = np.column_stack([np.ones(n), np.arange(n)])
    residuals = np.asarray(errors) - design @ np.linalg.lstsq(design, np.asarray(errors), rcond=None)[0]
    plain = np.sum(residuals[1:] * residuals[:-1]) / np.sum(residuals**2)
    r = float(np.clip((plain * n + 2) / (n - 4), 0, 0.9))
    inflation = (1 + r) / (1 - r)
    variance = np.sum(residuals**2) / max(1, n - 2 * min(inflation, n / 3))
    quantile = stats.t.ppf((1 + confidence) / 2, max(n / inflation - 2, (n - 2) / 4, 2))
    return quantile * math.sqrt(variance * inflation / n), n / inflation


def test_three_values_by_hand():
    """1, 2, 6: mean 3, variance 7; t for 2 degrees is 4.302653."""
    found = spread(influences([1.0, 2.0, 6.0]), 0.95)
    assert mean([1.0, 2.0, 6.0]) == 3
    assert found.half_width == pytest.approx(4.302653 * math.sqrt(7 / 3), rel=1e-6)
    assert found.num_effective == 3


def test_six_values_by_hand():
    """Around their line 1, -1, 1, -1, 1, -1 has negative correlation, which counts as 0: six values, four degrees.

    The slope is -3/35 a step: sum e^2 = 6 - (3/35)^2 * 35/2 = 6 - 9/70.
    """
    found = spread([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], 0.95)
    assert found.num_effective == 6
    slope_part = 9 / 17.5
    variance = (6 - slope_part) / (6 - 2)
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(variance / 6), rel=1e-6)


def test_pooling_adds_up_before_it_divides():
    """Acceptance length 1 + accepted / rounds: 1 + 10 / 10 and 1 + 90 / 30 make 1 + 100 / 40."""
    values, rounds = [2.0, 4.0], [10.0, 30.0]
    assert mean(values, rounds) == pytest.approx(3.5)
    assert influences(values, rounds) == pytest.approx([10 * -1.5 / 20, 30 * 0.5 / 20])
    assert mean(values) == 3


def test_equal_weights_change_nothing():
    values = autoregressive(random.Random(1), 30, 0.4)
    assert influences(values, [7.0] * 30) == pytest.approx(influences(values))


def test_constant_values_are_exact():
    assert mean([0.1] * 7) == 0.1
    assert spread(influences([0.1] * 7), 0.95).half_width == 0
    assert num_effective([0.1] * 7) == 7


def test_a_straight_line_is_no_noise():
    errors = influences([0.1 * i for i in range(50)])
    assert max(map(abs, detrended(errors))) < 1e-12
    assert spread(errors, 0.95).half_width < 1e-12


@pytest.mark.parametrize("n", [6, 7, 20, 113])
@pytest.mark.parametrize("r", [0.0, 0.6, 0.99])
def test_the_interval_is_that_of_a_slow_reference(n, r):
    errors = influences(autoregressive(random.Random(n), n, r, trend=2))
    half_width, effective = slow_half_width(errors, 0.9)
    found = spread(errors, 0.9)
    assert found.half_width == pytest.approx(half_width, rel=1e-6)
    assert found.num_effective == pytest.approx(effective, rel=1e-6)


def test_the_correlation_is_found_without_bias():
    generator = random.Random(5)
    found = [correlation(detrended(influences(autoregressive(generator, 60, 0.5, trend=3)))) for _ in range(400)]
    assert sum(found) / len(found) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("n", "r", "trend", "at_least"),
    [(4, 0, 0, 0.92), (6, 0, 0, 0.93), (20, 0, 4, 0.93), (20, 0.6, 0, 0.86), (60, 0.6, 4, 0.91), (200, 0.8, 4, 0.92)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(n, r, trend, at_least):
    """Of 95 % intervals on simulated series with mean 0, for the seed given; short correlated ones tell too little of
    their correlation to keep the promise whole."""
    generator = random.Random(n)
    series = [autoregressive(generator, n, r, trend) for _ in range(600)]
    covered = sum(abs(mean(values)) <= spread(influences(values), 0.95).half_width for values in series)
    assert at_least <= covered / len(series) <= 0.99


def test_the_interval_of_a_ratio_holds_the_truth_as_often_as_it_says():
    """Ratios over very unequal numbers of rounds, more noise where there are fewer."""
    generator, covered = random.Random(3), 0
    for _ in range(400):
        rounds = [generator.choice([20, 200]) for _ in range(40)]
        values = [3 + generator.gauss(0, 1) / math.sqrt(count) for count in rounds]
        half_width = spread(influences(values, rounds), 0.95).half_width
        covered += abs(mean(values, rounds) - 3) <= half_width
    assert 0.92 <= covered / 400 <= 0.985


def test_more_confidence_is_a_wider_interval():
    errors = influences(autoregressive(random.Random(2), 40, 0.3))
    widths = [spread(errors, confidence).half_width for confidence in (0.5, 0.9, 0.95, 0.99, 0.999)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_values_at_the_end_of_what_counts_as_finite_do_not_overflow():
    errors = influences([1e50, -1e50] * 10, [1e50] * 20)
    assert math.isfinite(spread(errors, 0.999).half_width)
