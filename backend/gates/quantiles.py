"""Quantiles of a series of steps, with intervals between two of its own values."""

import math
from collections.abc import Sequence
from statistics import NormalDist

_EXACT_UP_TO = 2000


def quantile(ordered: Sequence[float], level: float) -> float:
    """Of values in ascending order, linear between two of them (type 7 of Hyndman and Fan)."""
    place = (len(ordered) - 1) * level
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def quantile_interval(
    ordered: Sequence[float], level: float, confidence: float, num_effective: float
) -> tuple[float | None, float | None]:
    """Between two of the values, by how many independent ones fall below a quantile (David and Nagaraja, Order
    Statistics, 7.1), with the series counted as `num_effective` independent values.

    None for an end that so few values cannot hold: below 72 there is no upper one of the 95 % quantile.
    """
    n = len(ordered)
    m = max(1, min(n, math.floor(num_effective)))
    low, high = _ranks(m, level, (1 - confidence) / 2)
    # Ranks of m values as those of n, outwards.
    return (
        None if low < 1 else ordered[math.floor((low - 1) * (n - 1) / max(1, m - 1))],
        None if high > m else ordered[math.ceil((high - 1) * (n - 1) / max(1, m - 1))],
    )


def _ranks(m: int, level: float, tail: float) -> tuple[int, int]:
    """The largest l with P(B < l) <= tail and the smallest h with P(B >= h) <= tail, where B is how many of m values
    fall below the quantile: binomial. From 1; 0 and m + 1 stand for none."""
    if m > _EXACT_UP_TO:
        margin = NormalDist().inv_cdf(1 - tail) * math.sqrt(m * level * (1 - level))
        return max(0, math.floor(m * level - margin)), min(m + 1, math.ceil(m * level + margin) + 1)
    low, high, below = 0, m + 1, 0.0
    for k in range(m + 1):  # below = P(B < k)
        if below <= tail:
            low = k
        if 1 - below <= tail and k < high:
            high = k
        below += math.exp(
            math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1)
            + k * math.log(level) + (m - k) * math.log1p(-level)
        )  # fmt: skip
    return low, high
