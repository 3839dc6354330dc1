"""What decides each round's draft length: nothing but its setting, or the controller by what it measured.

Before the controller can choose, the time of a round is measured for some numbers of sequences and draft lengths, on
the weights and prompts of the first call, at the beginning of responses and further on.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from workers.algo.draft_length import SETTLING_ROUNDS, Round
from workers.algo.first_costs import RoundTime

_REPEATS = range(4, 25)
"""Measured generations of each number of sequences: at least, and below. Each measures every other length."""
_ENOUGH_S = 0.6
"""Time of one number of sequences after which its least number of generations is enough."""
_WARMING_ROUNDS = 4
"""After prompts were read, the first rounds are slow."""
_ROUNDS_OF_A_LENGTH = SETTLING_ROUNDS + 2


class DraftLengths(Protocol):
    """Chooses, and is told what came of it; workers.algo.draft_length.DraftLengthController is one."""

    max_length: int
    stride: int
    """Rounds without a draft from one that is chosen to have none: where rounds are short, it is asked, and told of
    them, once in so many. Both take time, which such rounds do not win back; vLLM's steps are long beside it."""

    def begin(self) -> None:
        """A call begins."""

    def choose(self, num_sequences: int) -> int:
        """k of a round whose drafts have as many tokens as are asked for."""

    def choose_lookup(self, num_sequences: int) -> int:
        """The most tokens to look up, 0 for not looking."""

    def width(self, num_drafted: Sequence[int]) -> int:
        """Of looked-up drafts of so many tokens, how many tokens a sequence to verify."""

    def predicted_s(self, num_sequences: int, draft_length: float, context: float) -> float:
        """What the round is expected to take with so many tokens a sequence; 0 where nothing is."""

    def observe(self, round_: Round) -> None:
        """What a round brought."""

    def observe_lookup(self, num_sequences: int, seconds: float) -> None:
        """What looking for the last drafts took, of which as many were verified as width() said."""


class FixedDraftLength:
    """Always the same."""

    stride = 1

    def __init__(self, draft_length: int) -> None:
        self.max_length = draft_length

    def begin(self) -> None:
        """It changes nothing."""

    def choose(self, num_sequences: int) -> int:
        return self.max_length

    choose_lookup = choose

    def width(self, num_drafted: Sequence[int]) -> int:
        return min(max(num_drafted, default=0), self.max_length)

    def predicted_s(self, num_sequences: int, draft_length: float, context: float) -> float:
        return 0.0

    def observe(self, round_: Round) -> None:
        """Nothing to learn."""

    def observe_lookup(self, *observed: object) -> None:
        """Nothing to learn."""


class ScheduledDraftLengths(FixedDraftLength):
    """One length after the other, to measure what rounds of each take once they have settled. Before them come some
    of the first length, for rounds after prompts were read are slow."""

    def __init__(self, lengths: Sequence[int]) -> None:
        super().__init__(max(lengths))
        each = [length for length in lengths for _ in range(_ROUNDS_OF_A_LENGTH)]
        self._schedule = [lengths[0]] * _WARMING_ROUNDS + each
        self._next = 0
        self.measured: list[RoundTime] = []

    @property
    def num_rounds(self) -> int:
        """Until all were measured."""
        return len(self._schedule)

    @property
    def num_tokens(self) -> int:
        """That a sequence gets of these rounds at most."""
        return self.num_rounds + sum(self._schedule)

    def choose(self, num_sequences: int) -> int:
        self._next += 1
        return self._schedule[self._next - 1]

    choose_lookup = choose

    def observe(self, round_: Round) -> None:
        turn = self._next - 1 - _WARMING_ROUNDS
        if turn >= 0 and turn % _ROUNDS_OF_A_LENGTH >= SETTLING_ROUNDS:
            number, length, context, *_, seconds = round_
            self.measured.append(RoundTime(number, length, context, seconds))


def measured_numbers(max_batch_size: int) -> list[int]:
    """Powers of two up to the batch size, and that itself."""
    powers = [1 << i for i in range(max_batch_size.bit_length())]
    return sorted({*[n for n in powers if n <= max_batch_size], max_batch_size})


def measured_lengths(max_length: int) -> list[int]:
    """0 to 8, then every other one, and the longest."""
    return [length for length in range(max_length + 1) if length <= 8 or length % 2 == 0 or length == max_length]


def lengthened(prompt: Sequence[int], num_tokens: int) -> list[int]:
    """The prompt over and over, num_tokens longer: a sequence as long as one in the middle of its response."""
    repeats = -(-(len(prompt) + num_tokens) // len(prompt))
    return (list(prompt) * repeats)[: len(prompt) + num_tokens]


def measure_costs(
    run: Callable[[int, ScheduledDraftLengths, bool], None], max_batch_size: int, max_length: int
) -> list[RoundTime]:
    """Rounds of all lengths; run(n, schedule, is_far) runs those of n sequences, at the beginning or further on.

    Each time with half of the lengths, so that sequences do not outgrow their responses; up at the beginning where down
    further on, so that all lengths are measured on sequences that are as long in the mean.
    """
    measured: list[RoundTime] = []
    lengths = measured_lengths(max_length)
    for number in measured_numbers(max_batch_size):
        began = time.perf_counter()
        for repeat in range(_REPEATS.stop):
            if repeat >= _REPEATS.start and time.perf_counter() - began > _ENOUGH_S:
                break
            half, is_far = repeat % 2, repeat % 4 >= 2
            schedule = ScheduledDraftLengths(lengths[half::2][:: 1 if half == is_far else -1])
            run(number, schedule, is_far)
            measured += schedule.measured
    return measured
