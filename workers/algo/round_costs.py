"""What a round of n sequences and k drafted tokens takes: measured in advance, then corrected by every round that runs.

log c(n, k, x) = log m(n, k, x) + a + b_n + d_nk: what was measured in advance for sequences that hold x tokens, and how
the machine (a), rounds of so many sequences (b) and rounds of this one kind (d) have since turned out to differ from
that. Each is a random walk that is believed to be within a standard deviation s of its estimate; a round that took e
more than expected, in logarithms, moves each by e s^2 / (sum of all s^2 + variance of a round), as a Kalman filter
without covariances does. A round thus says most of its own kind, and something of all others: a machine that slows down
slows all of them.
"""

import math
from collections.abc import Iterable, Sequence

from workers.algo.first_costs import RoundTime, first_costs

_ROUND_VARIANCE = 0.12**2
"""Of one round's log time; as measured on shared processors, interruptions left out."""
_LARGEST_SURPRISE = 0.35
"""More than this, in logarithms, is an interruption and counts as this much."""
_DRIFT_VARIANCES = (0.01**2, 0.003**2, 0.0007**2)
"""Of a, b and d, added every round: by 1,000 rounds a kind that did not run is off by some 2 %."""
_FIRST_VARIANCES = (0.2**2, 0.1**2, 0.06**2)
"""Of a, b and d after the first measurement."""
_LARGEST_VARIANCE = 0.07**2
"""Of d: kinds that never run do not become unknown."""
_CONTEXT_MEMORY = 300
"""Rounds of a number of sequences over which their usual context is forgotten."""


_FEW_TOKENS = 32
"""Up to which a pass takes the time of exactly so many."""


def verified(num_tokens: int, num_sequences: int, tile: int) -> float:
    """The draft length at which a round takes as long as one that verifies so many tokens in all, packed: every
    sequence's last one and those it drafted. A pass takes the time of whole tiles of so many tokens, which counts where
    no round of equal lengths has as many tokens."""
    if num_tokens > _FEW_TOKENS and num_tokens % num_sequences:
        num_tokens = -(-num_tokens // tile) * tile
    return num_tokens / num_sequences - 1


def whole(draft_length: float) -> int:
    """The kind of a round whose draft length is a mean; 0 for no draft at all only."""
    return max(round(draft_length), 1) if draft_length else 0


def between(values: Sequence[float], draft_length: float) -> float:
    """Of values for whole draft lengths, in proportion. Less than one token continues what more of them show: a round
    without a draft is of another kind."""
    low = int(draft_length)
    if low == draft_length or low >= len(values) - 1:
        return values[min(low, len(values) - 1)]
    low = min(max(low, 1), len(values) - 2)
    return values[low] + (draft_length - low) * (values[low + 1] - values[low])


class CostTable:
    """c(n, k, x) in seconds, by what was measured for some n and in proportion between, also between whole k."""

    def __init__(self, measured: Iterable[RoundTime], max_length: int) -> None:
        """measured: any number of rounds of each kind; every number of sequences with lengths 0 and max_length.

        Raises ValueError where nothing was measured.
        """
        by_number: dict[int, list[RoundTime]] = {}
        for round_ in measured:
            by_number.setdefault(round_.num_sequences, []).append(round_)
        if not by_number:
            raise ValueError("the cost table needs at least one measured round")
        self.max_length = max_length
        self._numbers = sorted(by_number)
        first = [first_costs(by_number[n], max_length) for n in self._numbers]
        self._contexts = {n: costs.context for n, costs in zip(self._numbers, first, strict=True)}
        """Of the rounds that ran, the mean with a memory: what lengths are chosen for. At each moment's context they
        would change with every response, which costs more than it brings."""
        self._empty = {n: costs.empty_s for n, costs in zip(self._numbers, first, strict=True)}
        """Seconds at no context, with b and d in them; a is apart."""
        self._slopes = {n: costs.slopes_s for n, costs in zip(self._numbers, first, strict=True)}
        """What a token more of every sequence adds, the same."""
        self._scale = 1.0
        self._round = 0
        self._scale_variance, number_variance, kind_variance = _FIRST_VARIANCES
        self._number_variances = dict.fromkeys(self._numbers, number_variance)
        self._kind_variances = {n: [kind_variance] * (max_length + 1) for n in self._numbers}
        self._last_rounds = {n: [0] * (max_length + 1) for n in self._numbers}

    def seconds(self, num_sequences: int, draft_length: float, context: float) -> float:
        """Expected time of a round, between the measured numbers in proportion, beyond them as at the nearest; so many
        drafted tokens a sequence in the mean."""
        empty, slope = self._line(num_sequences, draft_length)
        return empty + slope * context

    def row(self, num_sequences: int) -> list[float]:
        """The same for every draft length, at the usual context."""
        low, high, share = self._around(num_sequences)
        scale_low, scale_high = self._scale * (1 - share), self._scale * share
        of_low, of_high = self._usual(low), self._usual(high)
        return [a * scale_low + b * scale_high for a, b in zip(of_low, of_high, strict=True)]

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

    def observe(self, taken: Sequence[RoundTime]) -> None:
        """Correct what was expected of rounds of one number of sequences and one kind by what they took: a step of the
        filter by their mean surprise."""
        number, length = taken[0].num_sequences, min(whole(taken[0].draft_length), self.max_length)
        self._round += len(taken)
        low, high, share = self._around(number)
        nearest, largest = (high if share > 0.5 else low), _LARGEST_SURPRISE
        lines = {k: self._line(number, k) for k in {round_.draft_length for round_ in taken}}
        surprises = [math.log(seconds / (lines[k][0] + lines[k][1] * context)) for _, k, context, seconds in taken]
        surprise = sum(min(max(e, -largest), largest) for e in surprises) / len(taken)
        drift_scale, drift_number = (variance * len(taken) for variance in _DRIFT_VARIANCES[:2])
        since = self._round - self._last_rounds[nearest][length]
        scale, of_number = self._scale_variance + drift_scale, self._number_variances[nearest] + drift_number
        kind = min(self._kind_variances[nearest][length] + _DRIFT_VARIANCES[2] * since, _LARGEST_VARIANCE)
        total = scale + of_number + kind + _ROUND_VARIANCE / len(taken)
        self._scale *= math.exp(surprise * scale / total)
        for at, weight in ((low, 1 - share), (high, share)):
            if weight:
                of_all, of_kind = (math.exp(surprise * weight * part / total) for part in (of_number, kind))
                for values in (self._empty[at], self._slopes[at]):
                    values[length] *= of_kind
                    values[:] = [value * of_all for value in values]
        self._scale_variance = scale - scale * scale / total
        self._number_variances[nearest] = of_number - of_number * of_number / total
        self._kind_variances[nearest][length] = kind - kind * kind / total
        self._last_rounds[nearest][length] = self._round
        usual, memory = sum(round_.context for round_ in taken) / len(taken), min(len(taken) / _CONTEXT_MEMORY, 1.0)
        self._contexts[nearest] += memory * (usual - self._contexts[nearest])

    def _line(self, num_sequences: int, draft_length: float) -> tuple[float, float]:
        """Seconds at no context, and what a token more of every sequence adds."""
        low, high, share = self._around(num_sequences)
        empty, slope = between(self._empty[low], draft_length), between(self._slopes[low], draft_length)
        if share:
            empty += share * (between(self._empty[high], draft_length) - empty)
            slope += share * (between(self._slopes[high], draft_length) - slope)
        return self._scale * empty, self._scale * slope

    def _usual(self, number: int) -> list[float]:
        """Of a measured number, a apart."""
        context = self._contexts[number]
        return [empty + slope * context for empty, slope in zip(self._empty[number], self._slopes[number], strict=True)]

    def _around(self, num_sequences: int) -> tuple[int, int, float]:
        """The measured numbers below and above, and how far towards the upper one."""
        if num_sequences in self._empty:
            return num_sequences, num_sequences, 0.0
        low = max((n for n in self._numbers if n <= num_sequences), default=self._numbers[0])
        high = min((n for n in self._numbers if n >= num_sequences), default=self._numbers[-1])
        return low, high, (num_sequences - low) / (high - low) if high > low else 0.0
