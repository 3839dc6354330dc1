"""What a round of n sequences and k drafted tokens takes: measured in advance, then corrected by every round that runs.

log c(n, k) = log m(n, k) + a + b_n + d_nk: what was measured in advance, and how the machine (a), rounds of so many
sequences (b) and rounds of this one kind (d) have since turned out to differ from that. Each is a random walk that is
believed to be within a standard deviation s of its estimate; a round that took e more than expected, in logarithms,
moves each by e s^2 / (sum of all s^2 + variance of a round), as a Kalman filter without covariances does. A round thus
says most of its own kind, and something of all others: a machine that slows down slows all of them.
"""

import math
from collections.abc import Iterable, Sequence

_ROUND_VARIANCE = 0.12**2
"""Of one round's log time; as measured on shared processors, interruptions left out."""
_LARGEST_SURPRISE = 0.35
"""More than this, in logarithms, is an interruption and counts as this much."""
_DRIFT_VARIANCES = (0.01**2, 0.003**2, 0.0007**2)
"""Of a, b and d, added every round: by 1,000 rounds a kind that did not run is off by some 2 %."""
_FIRST_VARIANCES = (0.1**2, 0.05**2, 0.06**2)
"""Of a, b and d after the first measurement."""
_LARGEST_VARIANCE = 0.07**2
"""Of d: kinds that never run do not become unknown."""
_LINE_SHARE = 0.25
"""How much of a measured time is replaced by the line through all of its number of sequences, whose noise is less. Not
more, for times go in steps: nine tokens a sequence take a tile of products more than eight."""


class CostTable:
    """c(n, k) in seconds, by what was measured for some n and in proportion between."""

    def __init__(self, measured: Iterable[tuple[int, int, float]], max_length: int) -> None:
        """measured: (number of sequences, draft length, seconds of a round); every number with 0 and max_length.

        Raises ValueError where nothing was measured.
        """
        by_number: dict[int, dict[int, float]] = {}
        for number, length, seconds in measured:
            by_number.setdefault(number, {})[length] = seconds
        if not by_number:
            raise ValueError("the cost table needs at least one measured round")
        self.max_length = max_length
        self._numbers = sorted(by_number)
        self._cells = {n: _interpolated(_smoothed(by_number[n]), max_length) for n in self._numbers}
        """Seconds, with b and d in them; a is apart."""
        self._scale = 1.0
        self._round = 0
        first = _FIRST_VARIANCES
        self._scale_variance = first[0]
        self._number_variances = dict.fromkeys(self._numbers, first[1])
        self._kind_variances = {n: [first[2]] * (max_length + 1) for n in self._numbers}
        self._last_rounds = {n: [0] * (max_length + 1) for n in self._numbers}

    def seconds(self, num_sequences: int, draft_length: int) -> float:
        """Expected time of a round, between the measured numbers in proportion, beyond them as at the nearest."""
        low, high, share = self._around(num_sequences)
        cells = self._cells
        return (cells[low][draft_length] * (1 - share) + cells[high][draft_length] * share) * self._scale

    def row(self, num_sequences: int) -> list[float]:
        """seconds() of every draft length."""
        low, high, share = self._around(num_sequences)
        scale_low, scale_high = self._scale * (1 - share), self._scale * share
        return [a * scale_low + b * scale_high for a, b in zip(self._cells[low], self._cells[high], strict=True)]

    def deviations(self, num_sequences: int) -> list[float]:
        """Standard deviation of log c(n, k) at every draft length, leaving out what is common to all of them."""
        low, high, share = self._around(num_sequences)
        nearest = high if share > 0.5 else low
        variances, last = self._kind_variances[nearest], self._last_rounds[nearest]
        drift = _DRIFT_VARIANCES[2]
        return [
            math.sqrt(min(variance + drift * (self._round - at), _LARGEST_VARIANCE))
            for variance, at in zip(variances, last, strict=True)
        ]

    def observe(self, number: int, length: int, taken: Sequence[float]) -> None:
        """Correct what was expected of so many sequences and this draft length by the seconds that rounds took: a step
        of the filter by their mean surprise."""
        self._round += len(taken)
        low, high, share = self._around(number)
        nearest, expected = (high if share > 0.5 else low), self.seconds(number, length)
        largest = _LARGEST_SURPRISE
        surprise = sum(min(max(math.log(s / expected), -largest), largest) for s in taken) / len(taken)
        drift_scale, drift_number = (variance * len(taken) for variance in _DRIFT_VARIANCES[:2])
        since = self._round - self._last_rounds[nearest][length]
        scale, of_number = self._scale_variance + drift_scale, self._number_variances[nearest] + drift_number
        kind = min(self._kind_variances[nearest][length] + _DRIFT_VARIANCES[2] * since, _LARGEST_VARIANCE)
        total = scale + of_number + kind + _ROUND_VARIANCE / len(taken)
        self._scale *= math.exp(surprise * scale / total)
        for at, weight in ((low, 1 - share), (high, share)):
            if weight:
                factor = math.exp(surprise * weight * of_number / total)
                self._cells[at] = [value * factor for value in self._cells[at]]
                self._cells[at][length] *= math.exp(surprise * weight * kind / total)
        self._scale_variance = scale - scale * scale / total
        self._number_variances[nearest] = of_number - of_number * of_number / total
        self._kind_variances[nearest][length] = kind - kind * kind / total
        self._last_rounds[nearest][length] = self._round

    def _around(self, num_sequences: int) -> tuple[int, int, float]:
        """The measured numbers below and above, and how far towards the upper one."""
        if num_sequences in self._cells:
            return num_sequences, num_sequences, 0.0
        low = max((n for n in self._numbers if n <= num_sequences), default=self._numbers[0])
        high = min((n for n in self._numbers if n >= num_sequences), default=self._numbers[-1])
        return low, high, (num_sequences - low) / (high - low) if high > low else 0.0


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
