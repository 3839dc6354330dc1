import math

import pytest
from scipy import stats

from backend.gates.student import incomplete_beta, t_cdf, t_quantile

DEGREES = [1, 1.5, 2, 3.7, 10, 100.5, 999.5, 1001, 1e5]


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", [0.5, 0.75, 0.975, 0.9995])
def test_quantiles_are_those_of_another_implementation(degrees, probability):
    expected = stats.t.ppf(probability, degrees)
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_known_values():
    """One degree: Cauchy, tan(pi (p - 1/2)). Two degrees: t / sqrt(2 + t^2) = 2 p - 1."""
    assert t_quantile(0.75, 1) == pytest.approx(1)
    assert t_quantile(0.975, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))
    assert t_cdf(0, 7) == pytest.approx(0.5)


def test_the_quantile_is_where_the_distribution_says():
    for degrees in (1, 2.5, 30):
        assert t_cdf(t_quantile(0.9, degrees), degrees) == pytest.approx(0.9)


def test_the_beta_function_at_its_ends_and_as_a_polynomial():
    """I(x; 2, 2) = 3 x^2 - 2 x^3."""
    assert (incomplete_beta(0, 2, 2), incomplete_beta(1, 2, 2)) == (0, 1)
    for x in (0.1, 0.5, 0.9):
        assert incomplete_beta(x, 2, 2) == pytest.approx(3 * x**2 - 2 * x**3)
