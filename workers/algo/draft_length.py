"""The controller of the draft length: how many tokens to draft for the sequences that are decoded together.

A round of n sequences and draft length k yields n (1 + g_1 + ... + g_k) tokens, g_i being the chance that the i-th
drafted token is accepted, and takes c(n, k) seconds. Both are measured as the rounds go by, and the k of the most
tokens a second is taken, 0 (no draft) included.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SWITCHING_GAIN = 0.02
"""A draft length is left for another one that promises this much more, so that noise does not switch to and fro."""
_MEMORY_SEQUENCES = 4000.0
"""Sequence-rounds that the acceptance estimate remembers: some steps of a policy that moves."""
_PRIOR_SEQUENCES = 64.0
"""Weight of what the positions before say of a position, in sequence-rounds, for drafts fail at much the same rate at
each."""
_PRIOR_ACCEPTANCE = 0.7
"""Chance expected of a drafted token after accepted ones, where nothing was measured."""
_COST_STEP = 0.05
"""Share of a round's surprise by which its cost is corrected; more in its first rounds, for it was measured briefly."""
_MEASURED_ROUNDS = 3
"""Rounds that the first measurement counts for."""
_LARGEST_SURPRISE = 2.0
"""A round that took longer than this many times what was expected was interrupted; it counts as this many."""
_EXPLORING_INTERVAL = 32
"""Rounds between trials: of the next longer draft, and in every other trial of none, without which what speculation is
held against would not be known."""


_EXPLORING_ROUNDS = 2
"""Rounds that a trial takes: the first of a length pays for the change and says little of its cost."""


class AcceptanceEstimate:
    """g_i by position, with exponential forgetting; positions beyond the tried ones follow from those before."""

    def __init__(self, max_length: int) -> None:
        self._tried = [0.0] * max_length
        self._accepted = [0.0] * max_length

    def observe(self, num_tried: Sequence[int], num_accepted: Sequence[int]) -> None:
        """A round: sequences with a drafted token at each position, and those of them with it accepted."""
        for i, (tried, accepted) in enumerate(zip(num_tried, num_accepted, strict=True)):
            decay = 1 - min(1.0, tried / _MEMORY_SEQUENCES)
            self._tried[i] = self._tried[i] * decay + tried
            self._accepted[i] = self._accepted[i] * decay + accepted

    def chances(self) -> list[float]:
        """g_1 .. g_max, not increasing.

        g_i = (accepted_i + m g_(i-1) a_(i-1)) / (tried_i + m), with a_(i-1) = g_(i-1) / g_(i-2) what was accepted there
        given all before it, and m the prior's weight.
        """
        chances: list[float] = []
        before, rate = 1.0, _PRIOR_ACCEPTANCE
        for tried, accepted in zip(self._tried, self._accepted, strict=True):
            chance = (accepted + _PRIOR_SEQUENCES * before * rate) / (tried + _PRIOR_SEQUENCES)
            chance = min(chance, before)
            rate = chance / before if before > 0 else 0.0
            chances.append(chance)
            before = chance
        return chances


class CostTable:
    """c(n, k) in seconds by powers of two of n, corrected by every round that runs."""

    def __init__(self, measured: Iterable[tuple[int, int, float]], max_length: int) -> None:
        """measured: (number of sequences, draft length, seconds of a round); every number with 0 and max_length.

        Raises ValueError where nothing was measured.
        """
        by_number: dict[int, dict[int, float]] = {}
        for number, length, seconds in measured:
            by_number.setdefault(number, {})[length] = seconds
        if not by_number:
            raise ValueError("the cost table needs at least one measured round")
        self._max_length = max_length
        self._numbers = sorted(by_number)
        self._cells = {n: _interpolated(by_number[n], max_length) for n in self._numbers}
        self._rounds = {n: [_MEASURED_ROUNDS] * (max_length + 1) for n in self._numbers}
        self._drift = 1.0

    def seconds(self, num_sequences: int, draft_length: int) -> float:
        """Expected time of a round, between the measured numbers in proportion, beyond them as at the nearest."""
        low, high, share = self._around(num_sequences)
        cell = self._cells[low][draft_length] * (1 - share) + self._cells[high][draft_length] * share
        return cell * self._drift

    def observe(self, num_sequences: int, draft_length: int, seconds: float) -> None:
        """Correct what was expected by what a round took.

        A part of the correction goes to all cells, since a machine that slows down slows all of them.
        """
        surprise = seconds / self.seconds(num_sequences, draft_length)
        surprise = min(max(surprise, 1 / _LARGEST_SURPRISE), _LARGEST_SURPRISE)
        self._drift *= surprise**_COST_STEP
        low, high, share = self._around(num_sequences)
        for number, weight in ((low, 1 - share), (high, share)):
            self._rounds[number][draft_length] += 1
            step = max(_COST_STEP, 1 / self._rounds[number][draft_length])
            self._cells[number][draft_length] *= surprise ** (step * weight)

    def _around(self, num_sequences: int) -> tuple[int, int, float]:
        """The measured numbers below and above, and how far towards the upper one."""
        low = max((n for n in self._numbers if n <= num_sequences), default=self._numbers[0])
        high = min((n for n in self._numbers if n >= num_sequences), default=self._numbers[-1])
        return low, high, (num_sequences - low) / (high - low) if high > low else 0.0


@dataclass(slots=True)
class _Lookups:
    """What rounds that looked for drafts yielded and took, forgotten exponentially."""

    tokens: float = 0.0
    seconds: float = 0.0

    def observe(self, tokens: float, seconds: float) -> None:
        self.tokens = self.tokens * 0.98 + tokens
        self.seconds = self.seconds * 0.98 + seconds


class DraftLengthController:
    """Chooses each round's draft length and learns from what it brought. Holds no random numbers: choosing by the past
    alone keeps samples exact."""

    def __init__(self, max_length: int, costs: CostTable) -> None:
        self.max_length = max_length
        self.costs = costs
        self.acceptance = AcceptanceEstimate(max_length)
        self._current: dict[int, int] = {}
        self._rounds: dict[int, int] = {}
        self._lookups: dict[int, _Lookups] = {}
        self._last_length: int | None = None

    def choose(self, num_sequences: int) -> int:
        """k for a round in which every sequence gets as many tokens as are asked for."""
        bucket = num_sequences.bit_length()
        self._rounds[bucket] = rounds = self._rounds.get(bucket, 0) + 1
        speeds = self._speeds(num_sequences)
        best = max(range(len(speeds)), key=speeds.__getitem__)
        current = self._current.get(bucket, best)
        if speeds[best] > speeds[current] * (1 + SWITCHING_GAIN):
            current = best
        self._current[bucket] = current
        if rounds % _EXPLORING_INTERVAL >= _EXPLORING_ROUNDS or rounds < _EXPLORING_INTERVAL:
            return current
        is_plain = current > 0 and rounds // _EXPLORING_INTERVAL % 2 == 0
        return 0 if is_plain else min(current + 1, self.max_length)

    def choose_lookup(self, num_sequences: int) -> int:
        """k where drafts are looked up, which only the lookup tells whether they are there: all or nothing."""
        bucket = num_sequences.bit_length()
        self._rounds[bucket] = rounds = self._rounds.get(bucket, 0) + 1
        known = self._lookups.get(bucket)
        if known is None or known.seconds == 0:
            return self.max_length
        plain = num_sequences / self.costs.seconds(num_sequences, 0)
        is_worth_it = known.tokens / known.seconds > plain
        return self.max_length if is_worth_it or rounds % _EXPLORING_INTERVAL == 0 else 0

    def width(self, num_drafted: Sequence[int]) -> int:
        """Of drafts that were found, how many tokens a sequence to verify; the rest is dropped."""
        num_sequences = len(num_drafted)
        gains = self.acceptance.chances()
        tokens = float(num_sequences)
        best, best_speed = 0, tokens / self.costs.seconds(num_sequences, 0)
        for length in range(1, min(max(num_drafted, default=0), self.max_length) + 1):
            tokens += gains[length - 1] * sum(n >= length for n in num_drafted)
            speed = tokens / self.costs.seconds(num_sequences, length)
            if speed > best_speed:
                best, best_speed = length, speed
        return best

    def predicted_s(self, num_sequences: int, draft_length: int) -> float:
        """What a round is expected to take."""
        return self.costs.seconds(num_sequences, draft_length)

    def observe(
        self, num_sequences: int, draft_length: int, num_tried: Sequence[int], accepted: Sequence[int], seconds: float
    ) -> None:
        """A round of one draft length: sequences with a drafted token at each position, and those with it accepted."""
        if draft_length == self._last_length:
            self.costs.observe(num_sequences, draft_length, seconds)
        self._last_length = draft_length
        self.acceptance.observe(num_tried, accepted)

    def observe_lookup(self, num_sequences: int, num_tokens: int, seconds: float) -> None:
        """A round in which drafts were looked for, found or not: what it yielded and took, the lookup included."""
        self._lookups.setdefault(num_sequences.bit_length(), _Lookups()).observe(num_tokens, seconds)

    def _speeds(self, num_sequences: int) -> list[float]:
        """Tokens a second by draft length."""
        tokens, speeds = 1.0, []
        chances = [0.0, *self.acceptance.chances()]
        for length, chance in enumerate(chances):
            tokens += chance
            speeds.append(num_sequences * tokens / self.costs.seconds(num_sequences, length))
        return speeds


def _interpolated(measured: dict[int, float], max_length: int) -> list[float]:
    """Seconds at every draft length, in proportion between the measured ones."""
    lengths = sorted(measured)
    seconds = []
    for length in range(max_length + 1):
        low = max((at for at in lengths if at <= length), default=lengths[0])
        high = min((at for at in lengths if at >= length), default=lengths[-1])
        share = (length - low) / (high - low) if high > low else 0.0
        seconds.append(measured[low] * (1 - share) + measured[high] * share)
    return seconds
