"""Whether to look drafts up at all, where only the lookup tells whether there are any.

Worth of rounds with lookups against rounds without: (tokens / n) / (seconds / c(n, 0)), summed over rounds with
exponential forgetting, above 1 where they pay. Tokens are those expected of what was found, for what was accepted is
noise. Where they do not pay there is none, but for trials; what those lose is bound by a share of the time, and each
that fails makes the next one come later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_MEMORY = 0.98
"""A round's weight after the next one: a response is hard here and easy there, and lookups are judged by all of it."""
_WAKING_WORTH, _STAYING_WORTH = 1.05, 1.04
"""After a trial, and to go on, so that noise does not switch to and fro; a gain of less is not sure to be one."""
_LARGEST_LOOKUP = 3.0
"""In medians."""
_TRIAL_ROUNDS = 4
_PAST_ROUNDS = 6.0
"""As which all that was seen before a trial counts: it is old."""
_FIRST_ROUNDS = 12
"""Before anything is known, longer: what is accepted is to be learned too."""
_LARGEST_CREDIT = 2.0
"""Rounds without lookups whose time may be lost at once, gained by lookups before or saved."""
_LEAST_PRICES = 0.25, 1.0
"""Of a trial, in the same: after the first one that fails, and at most; each doubles it. Lookups that are just not
worth their time seem to lose next to nothing, but choosing and learning take time too."""


@dataclass(slots=True)
class _State:
    """Of some numbers of sequences."""

    tokens: float = 0.0
    """A sequence."""
    time: float = 0.0
    """In rounds without lookups, as all times here."""
    is_awake: bool = True
    trial_rounds_left: int = _FIRST_ROUNDS
    credit: float = 0.0
    price: float = 0.0
    """What the last trial lost; 0 before there was one."""
    least_price: float = _LEAST_PRICES[0]
    backlog: float = 0.0
    """What its first lookup took for catching up."""
    first_lookup: float = 0.0
    lookup_time: float = 0.0
    """Of the latest ones, the median."""
    lost: float = 0.0
    """In this trial."""

    @property
    def worth(self) -> float:
        return self.tokens / self.time if self.time else 1.0


class LookupWorth:
    """By the number of sequences, powers of two together."""

    def __init__(self, trial_share: float) -> None:
        """trial_share: of the time of rounds without lookups, what trials may lose."""
        self._trial_share = trial_share
        self._states: dict[int, _State] = {}

    def is_awake(self, num_sequences: int, *, is_fresh: bool) -> bool:
        """Whether to look in the next rounds; is_fresh: rows have no tokens to catch up with."""
        state = self._of(num_sequences)
        price = state.price
        if not state.is_awake and self._pays_for_more(num_sequences):
            price = min(price, _LEAST_PRICES[0])
        if not state.is_awake and state.credit >= price + (0.0 if is_fresh else state.backlog):
            state.is_awake, state.trial_rounds_left, state.lost = True, _TRIAL_ROUNDS, 0.0
            share = min(_PAST_ROUNDS / state.time, 1.0) if state.time else 1.0
            state.tokens, state.time = state.tokens * share, state.time * share
        return state.is_awake

    def is_trial(self, num_sequences: int) -> bool:
        """Whether what lookups are worth is being found out."""
        state = self._of(num_sequences)
        return state.is_awake and state.trial_rounds_left > 0

    def gain(self, num_sequences: int) -> float:
        """Tokens a second of all rounds over that of rounds without lookups."""
        return max(self._of(num_sequences).worth, 1.0)

    def pass_rounds(self, num_sequences: int, count: int) -> None:
        """Rounds, which save for trials."""
        state = self._of(num_sequences)
        largest = max(_LARGEST_CREDIT, state.price + state.backlog)
        state.credit = min(state.credit + count * self._trial_share, largest)

    def observe(
        self, num_sequences: int, tokens: float, lookup_times: Sequence[float], round_time: float, excess: float = 0.0
    ) -> None:
        """Rounds that looked: the mean tokens a sequence that are to be expected of them, what each lookup took, and
        the mean time that the rest is expected to take; and what they lost beside that, for trials verify hopefully."""
        state, number = self._of(num_sequences), len(lookup_times)
        counted, catching_up = lookup_times, 0.0
        if state.trial_rounds_left == _TRIAL_ROUNDS:
            # The first lookup catches up with what rounds without any brought, which is no part of what others take.
            state.first_lookup = catching_up = lookup_times[0]
            counted = lookup_times[1:]
        # Some are interrupted.
        largest = _LARGEST_LOOKUP * sorted(counted)[len(counted) // 2] if counted else 0.0
        lookup_time = sum(min(taken, largest) for taken in counted)
        lost = catching_up + lookup_time + number * (round_time - tokens + excess)
        state.lost += lost
        state.credit -= lost
        if counted:
            state.lookup_time = lookup_time / len(counted)
            decay = _MEMORY ** len(counted)
            weight = (1 - decay) / (1 - _MEMORY)
            state.tokens = state.tokens * decay + tokens * weight
            state.time = state.time * decay + (state.lookup_time + round_time) * weight
        if state.trial_rounds_left > number:
            state.trial_rounds_left -= number
        elif state.trial_rounds_left:
            self._end_trial(state)
        else:
            state.is_awake = state.worth > _STAYING_WORTH

    def _end_trial(self, state: _State) -> None:
        if not state.price:
            state.credit = 0.0  # what there was to learn at first is not held against later trials
        else:
            state.credit = min(state.credit, 0.0)
            state.backlog = max(state.first_lookup - state.lookup_time, 0.0)
        state.trial_rounds_left = 0
        state.price = max(state.lost - state.backlog, state.least_price)
        state.is_awake = state.worth > _WAKING_WORTH
        least, largest = _LEAST_PRICES
        state.least_price = least if state.is_awake else min(2 * state.least_price, largest)

    def _pays_for_more(self, num_sequences: int) -> bool:
        """Whether lookups are worth their time with more sequences: verifying takes the less the fewer there are."""
        bucket = num_sequences.bit_length()
        return any(
            more > bucket and state.is_awake and not state.trial_rounds_left and state.worth > _WAKING_WORTH
            for more, state in self._states.items()
        )

    def _of(self, num_sequences: int) -> _State:
        bucket = num_sequences.bit_length()
        if bucket not in self._states:
            self._states[bucket] = _State()
        return self._states[bucket]
