import math
import random

import pytest

from backend.gates.estimates import Sample, against, estimate
from backend.gates.means import mean


def sample(values, first=1, weights=None):
    return Sample(tuple(range(first, first + len(values))), tuple(values), weights)


_GENERATOR = random.Random(1)
NOISE = [_GENERATOR.gauss(0, 1) for _ in range(40)]


@pytest.mark.parametrize(("aggregate", "value"), [("min", 1), ("max", 9), ("last", 4)])
def test_values_themselves_have_no_interval(aggregate, value):
    found = estimate(aggregate, sample([3, 9, 1, 4]), 0.95)
    assert (found.value, found.low, found.high, found.num_effective) == (value, value, value, None)


@pytest.mark.parametrize("aggregate", ["mean", "median", "p95"])
def test_one_value_is_itself(aggregate):
    found = estimate(aggregate, sample([2.5]), 0.95)
    assert (found.value, found.low, found.high) == (2.5, 2.5, 2.5)


def test_means_and_quantiles_lie_in_their_intervals():
    values = [10 + noise for noise in NOISE]
    for aggregate in ("mean", "median"):
        found = estimate(aggregate, sample(values), 0.95)
        assert found.low < found.value < found.high
    assert estimate("mean", sample(values), 0.95).value == pytest.approx(mean(values))


def test_few_values_are_said_to_be_taken_as_independent():
    assert "too few values" in estimate("mean", sample([1, 2, 4]), 0.95).method
    assert "autocorrelated" in estimate("mean", sample(NOISE), 0.95).method
    assert "pooled" in estimate("mean", sample(NOISE, weights=(1.0,) * 40), 0.95).method


def test_what_two_runs_share_is_no_uncertainty_of_their_difference():
    """Both learn along the same curve: step by step they differ by 1 exactly."""
    curve = [math.tanh(i / 10) * 20 for i in range(40)]
    own, other, is_paired = against("mean", sample([v + 1 for v in curve]), sample(curve), 1.0, 0.95)
    assert is_paired
    assert own.value - other.value == pytest.approx(1)
    assert own.high - own.low < 1e-9
    later, _, is_paired = against("mean", sample([v + 1 for v in curve]), sample(curve, first=2), 1.0, 0.95)
    assert not is_paired
    assert later.high - later.low > 1


def test_independent_runs_add_their_variances():
    """Means of 4 and of 9 values: sqrt(h^2 + (slope k)^2)."""
    first, second = sample([1, 2, 3, 4]), sample([2, 4, 6, 9, 1])
    x, y = estimate("mean", first, 0.95), estimate("mean", second, 0.95)
    own, other, is_paired = against("mean", first, second, 2.0, 0.95)
    expected = math.hypot(x.high - x.value, 2 * (y.high - y.value))
    assert not is_paired
    assert (other.value, own.high - own.value) == (y.value, pytest.approx(expected))
    assert own.value - own.low == pytest.approx(expected)


def test_unequal_sides_stay_unequal_and_turn_with_the_slope():
    skewed = sample([math.exp(noise) for noise in NOISE])
    even = sample([5.0] * 40)
    x = estimate("median", skewed, 0.95)
    plus, _, _ = against("median", even, skewed, 1.0, 0.95)
    minus, _, _ = against("median", even, skewed, -1.0, 0.95)
    assert (plus.value - plus.low, plus.high - plus.value) == pytest.approx((x.high - x.value, x.value - x.low))
    assert (minus.value - minus.low, minus.high - minus.value) == pytest.approx((x.value - x.low, x.high - x.value))


def test_an_open_end_stays_open():
    few, many = sample([1.0, 2.0, 3.0]), sample(NOISE)
    own, _, _ = against("median", many, few, 1.0, 0.95)
    assert (own.low, own.high) == (None, None)


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says():
    generator, covered, others = random.Random(11), 0, 0
    for _ in range(300):
        first, second = ([generator.gauss(0, 1) for _ in range(30)] for _ in range(2))
        paired, other, _ = against("mean", sample(first), sample(second), 1.0, 0.95)
        apart, _, _ = against("mean", sample(first), sample(second, first=5), 1.0, 0.95)
        covered += paired.low <= other.value <= paired.high
        others += apart.low <= other.value <= apart.high
    assert 0.92 <= covered / 300 <= 0.985
    assert 0.93 <= others / 300 <= 0.995
