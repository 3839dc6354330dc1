"""Student's t distribution, from the standard library alone."""

import math
from statistics import NormalDist

_MANY_DEGREES = 1000.0
_EPSILON = 1e-14
_TINY = 1e-300
_MAX_QUANTILE = 1e6


def t_quantile(probability: float, degrees: float) -> float:
    """The t with P(T <= t) = probability, for 0.5 <= probability < 1 and degrees >= 1, whole or not.

    By bisection; above 1000 degrees by the expansion in 1 / degrees (Abramowitz and Stegun 26.7.5), good to 1e-7 there.
    """
    if degrees > _MANY_DEGREES:
        z = NormalDist().inv_cdf(probability)
        return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    low, high = 0.0, _MAX_QUANTILE
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        if t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_cdf(t: float, degrees: float) -> float:
    """P(T <= t) for t >= 0: 1 - I(degrees / (degrees + t^2); degrees / 2, 1 / 2) / 2 (Abramowitz and Stegun 26.7.1)."""
    return 1 - incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5) / 2


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised I(x; a, b), by its continued fraction (Abramowitz and Stegun 26.5.8), on the side where that
    converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)) by Lentz's method."""
    fraction, numerator, denominator = 1.0, 1.0, 0.0
    for n in range(1, 10_000):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / _not_zero(1 + d * denominator)
        numerator = _not_zero(1 + d / numerator)
        change = numerator * denominator
        fraction *= change
        if abs(change - 1) < _EPSILON:
            break
    return fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
