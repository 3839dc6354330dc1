"""What rounds of one number of sequences take by what was measured before the first call.

m(k, x) = e_k + s_k x, where sequences hold x tokens: a response's last rounds take a quarter longer than its first, so
that without s_k a length would be judged by where in a response it was measured.
"""

import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

_LEAST_DISTANCE = 0.5
"""Between two rounds that tell what a further token adds, of the largest distance."""
_LARGEST_INCREASE = 0.5
"""Share of a round's time that is due to what sequences hold, at most."""
_LINE_SHARE = 0.25
"""How much of a measured time is replaced by the line through all of its number of sequences, whose noise is less. Not
more, for times go in steps: nine tokens a sequence take a tile of products more than eight."""


class RoundTime(NamedTuple):
    """What a round took."""

    num_sequences: int
    draft_length: int
    context: float
    """Tokens that a sequence holds, the mean."""
    seconds: float


class FirstCosts(NamedTuple):
    """Of one number of sequences, by draft length."""

    context: float
    """At which they were measured, the mean."""
    empty_s: list[float]
    slopes_s: list[float]
    """What every further token adds."""


def first_costs(measured: Sequence[RoundTime], max_length: int) -> FirstCosts:
    """Through any number of rounds of each length, 0 and max_length among them."""
    context = statistics.mean(round_.context for round_ in measured)
    # Rounds without a draft run other kernels; those with one read a sequence once, whatever is verified.
    by_kind = [_slope([r for r in measured if (r.draft_length > 0) == is_drafted]) for is_drafted in (False, True)]
    seconds: dict[int, list[float]] = {}
    for _, length, at, taken in measured:
        seconds.setdefault(length, []).append(taken - by_kind[length > 0] * (at - context))
    medians = {length: statistics.median(some) for length, some in seconds.items()}
    middle_s = _interpolated(_smoothed(medians), max_length)
    slopes = [min(by_kind[k > 0], _LARGEST_INCREASE * s / max(context, 1.0)) for k, s in enumerate(middle_s)]
    return FirstCosts(context, [s - slope * context for s, slope in zip(middle_s, slopes, strict=True)], slopes)


def _slope(measured: Iterable[RoundTime]) -> float:
    """Seconds for every further token: the median of those between two rounds of one length that lie far apart, so that
    interruptions do not count; 0 where all are alike."""
    pairs = [
        (abs(a.context - b.context), (a.seconds - b.seconds) / (a.context - b.context))
        for a, b in combinations(measured, 2)
        if a.draft_length == b.draft_length and a.context != b.context
    ]
    least = _LEAST_DISTANCE * max((distance for distance, _ in pairs), default=0.0)
    return max(statistics.median([slope for distance, slope in pairs if distance >= least] or [0.0]), 0.0)


def _smoothed(measured: dict[int, float]) -> dict[int, float]:
    """A quarter of what lies off the line s = u + v k, v >= 0, is taken to be noise where there are four lengths and
    more.

    The line is fitted to k >= 1, for a round without a draft is of another kind, by the least sum of squared relative
    distances ((s_k - u - v k) / s_k)^2.
    """
    lengths = [length for length in measured if length > 0]
    if len(lengths) < 4:
        return measured
    weights = {k: 1 / measured[k] ** 2 for k in lengths}
    total = sum(weights.values())
    mean_k = sum(weights[k] * k for k in lengths) / total
    mean_s = sum(weights[k] * measured[k] for k in lengths) / total
    spread = sum(weights[k] * (k - mean_k) ** 2 for k in lengths)
    slope = max(sum(weights[k] * (k - mean_k) * (measured[k] - mean_s) for k in lengths) / spread, 0.0)
    on_line = {k: max(mean_s + slope * (k - mean_k), 0.5 * measured[k]) for k in lengths}
    return {k: s + _LINE_SHARE * (on_line[k] - s) if k in on_line else s for k, s in measured.items()}


def _interpolated(measured: dict[int, float], max_length: int) -> list[float]:
    """Seconds at every draft length, in proportion between the measured ones."""
    lengths: Sequence[int] = sorted(measured)
    seconds = []
    for length in range(max_length + 1):
        low = max((at for at in lengths if at <= length), default=lengths[0])
        high = min((at for at in lengths if at >= length), default=lengths[-1])
        share = (length - low) / (high - low) if high > low else 0.0
        seconds.append(measured[low] * (1 - share) + measured[high] * share)
    return seconds
