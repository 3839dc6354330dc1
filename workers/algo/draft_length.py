"""The controller of the draft length: how many tokens to draft for the sequences that are decoded together.

A round of n sequences and draft length k yields n t_k tokens and takes c(n, k) seconds. Both are measured as the rounds
go by (workers.algo.acceptance_estimate, workers.algo.round_costs), and the k of the most tokens a second is taken,
0 (no draft) included.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from workers.algo.acceptance_estimate import AcceptanceEstimate
from workers.algo.first_costs import RoundTime
from workers.algo.lookup_worth import LookupWorth
from workers.algo.positions import at_least
from workers.algo.round_costs import CostTable, between, verified, whole

SWITCHING_GAIN = 0.01
"""A draft length is left for another one that promises this much more, so that noise does not switch to and fro."""
TRIAL_SHARE = 0.01
"""Of the time of rounds without a draft, how much may be lost by trying whether drafts pay again."""
_OPTIMISM = 1.5
"""Standard deviations of a length's cost by which it is taken to be better than it looks. What may well be as good
as the best is so tried until it is known, which costs little, and what cannot be never is."""
_LEAST_PRICE = 0.05
"""Of a trial's round, in rounds without a draft: where drafts cost next to nothing they are not tried all the time."""
_TRIAL_ROUNDS = 4
"""Rounds that a trial takes."""
SETTLING_ROUNDS = 2
"""The first of a length pay for the change and say little of its cost."""
_HOPED_ACCEPTANCE = 0.75
"""In a trial of lookups, of a token after accepted ones: what was counted of drafts is as old as the last rounds that
verified any, and what they are looked up in has grown since. Without verifying some, it would stay believed."""
_DOUBTFUL_GAIN = 1.15
_PLAIN_ROUNDS, _PLAIN_INTERVAL_ROUNDS = 16, 200
"""Lookups that gain less are left out for some rounds from time to time."""
_COLD_ROUNDS = 3
"""The first ones of a call: prompts were just read, and rounds take longer than others of their kind."""
_SHORTEST_PLAN_S, _PLANNED_SHARE, _LONGEST_PLAN_S = 0.01, 0.05, 0.1
"""Time for which a choice holds, and rounds are gathered before anything is learned from them: both take time too."""


class Round(NamedTuple):
    """What one brought."""

    num_sequences: int
    draft_length: float
    """Tokens that were verified beside each sequence's last one; where rounds are packed see
    workers.algo.round_costs.verified()."""
    context: float
    """Tokens that a sequence held before it, the mean."""
    num_tried: Sequence[int]
    """Sequences with a drafted token at each position."""
    num_accepted: Sequence[int]
    """Those of them with it accepted."""
    num_lost: int
    """Tokens behind a response's end, of all sequences."""
    seconds: float
    """Wall time without that of a lookup."""


class _Lookup(NamedTuple):
    """One, and the round that followed it."""

    num_sequences: int
    width: int
    """Tokens verified, of a sequence at most."""
    num_found: Sequence[int]
    """Sequences with a token at each position, verified or not."""
    seconds: float
    """Of the lookup."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A choice for rounds of some number of sequences."""

    length: int
    until_s: float
    """Of the time that rounds have taken."""


@dataclass(frozen=True, slots=True)
class _LookupPlan:
    """Whether to look, for rounds of some number of sequences."""

    length: int
    """0 or the longest."""
    until_s: float
    prices: Sequence[float]
    """What verifying so many tokens takes longer than none, in tokens that the time would bring otherwise."""
    chances: Sequence[float]
    """By which it is judged what is worth that: those counted, or in a trial those hoped for if they are better."""


class DraftLengthController:
    """Chooses each round's draft length and learns from what it brought. Holds no random numbers: choosing by the past
    alone keeps samples exact."""

    stride = 32

    def __init__(self, max_length: int, costs: CostTable, *, tile: int | None = None) -> None:
        """tile: where a round takes the time of the tokens that are drafted, see workers.algo.round_costs.verified();
        without one it takes that of as many for every sequence as for that with the most."""
        self.max_length = max_length
        self.costs = costs
        self._tile = tile
        self.acceptance = AcceptanceEstimate(max_length)
        self.lookups = LookupWorth(TRIAL_SHARE)
        self._plans: dict[int, _Plan] = {}
        self._current: dict[int, int] = {}
        """Draft length by the number of sequences, powers of two together."""
        self._rounds: list[Round] = []
        """Not learned from yet."""
        self._lookup_plans: dict[int, _LookupPlan] = {}
        self._lookup_rounds: list[_Lookup] = []
        self._width = 0
        self._found: Sequence[int] = ()
        """Of this round's drafts, the sequences with a token at each position."""
        self._lookup_plan: _LookupPlan | None = None
        self._is_fresh = False
        self._num_cold = 0
        self._next_plain_s = 0.0
        """When rounds may go without lookups again to see what they take."""
        self._elapsed_s = 0.0
        self._learned_s = 0.0
        """When rounds were last learned from."""
        self._is_trial = False
        self._last_choice: int | None = None
        self._num_unsettled = 0
        self._credit_s = 0.0
        """What trials of drafts may still lose."""
        self._chances = self.acceptance.chances()
        self._yields = self.acceptance.yields()

    def choose(self, num_sequences: int) -> int:
        """k for a round in which every sequence gets as many tokens as are asked for."""
        # The three leading bits: numbers that are close share a choice.
        shift = max(num_sequences.bit_length() - 3, 0)
        plan = self._plans.get(num_sequences >> shift << shift)
        if plan is None or plan.until_s <= self._elapsed_s:
            self._learn_if_due()
            plan = self._plans[num_sequences >> shift << shift] = self._plan(num_sequences)
        return plan.length

    def begin(self) -> None:
        """A call begins: no row has tokens that lookups would have to catch up with."""
        self._learn()
        self._lookup_plans.clear()
        self._is_fresh, self._num_cold = True, _COLD_ROUNDS

    def choose_lookup(self, num_sequences: int) -> int:
        """k where drafts are looked up, which only the lookup tells whether they are there: all or nothing."""
        plan = self._lookup_plans.get(num_sequences)
        if plan is None or plan.until_s <= self._elapsed_s:
            self._learn_if_due()
            plan = self._lookup_plans[num_sequences] = self._plan_lookups(num_sequences)
        self._found, self._width, self._lookup_plan = (), 0, plan
        return plan.length

    def width(self, num_drafted: Sequence[int]) -> int:
        """Of drafts that were found, how many tokens a sequence to verify; the rest is dropped.

        Those that bring the most over what the time is worth: argmax over w of n + sum of g_i over all that have an
        i-th token, i <= w, less c(n, w) r, r being the tokens a second of all rounds; where rounds are packed less
        c(n, v) r, v being the length that the tokens to verify amount to. The most tokens a second of this
        round alone would end drafts too early where others are worse.
        """
        assert self._lookup_plan is not None
        prices, chances = self._lookup_plan.prices, self._lookup_plan.chances
        tokens = best_gain = float(len(num_drafted))
        best, self._found = 0, at_least(num_drafted, min(max(num_drafted), self.max_length))
        lengths = self._lengths_of_widths(self._found, len(num_drafted))
        for width, (count, length) in enumerate(zip(self._found, lengths, strict=True), 1):
            tokens += chances[width - 1] * count
            gain = tokens - between(prices, length)
            if gain > best_gain:
                best, best_gain = width, gain
        self._width = best
        return best

    def _lengths_of_widths(self, counts: Sequence[int], num_sequences: int) -> list[float]:
        """Of drafts that so many sequences have a token of at each position, the draft lengths that verifying 1, 2, ...
        of them amounts to."""
        if self._tile is None:
            return [float(width) for width in range(1, len(counts) + 1)]
        return [verified(n, num_sequences, self._tile) for n in list(accumulate(counts, initial=num_sequences))[1:]]

    def predicted_s(self, num_sequences: int, draft_length: float, context: float) -> float:
        """What the round is expected to take."""
        return self.costs.seconds(num_sequences, draft_length, context)

    def observe(self, round_: Round) -> None:
        """A round of one draft length."""
        self._rounds.append(round_)
        self._elapsed_s += round_.seconds

    def observe_lookup(self, num_sequences: int, seconds: float) -> None:
        """What looking for the last drafts took, of which as many were verified as width() said."""
        self._lookup_rounds.append(_Lookup(num_sequences, self._width, self._found, seconds))
        self._elapsed_s += seconds

    def _plan(self, num_sequences: int) -> _Plan:
        """The length of the most tokens a second, or a trial where that is 0 and enough was saved for one."""
        bucket, hopes = num_sequences.bit_length(), self._hopes(num_sequences)
        best = max(range(len(hopes)), key=hopes.__getitem__)
        current = self._current.get(bucket, best)
        if hopes[best] > hopes[current] * (1 + SWITCHING_GAIN):
            current = best
        self._current[bucket] = current
        if current == 0:
            seconds, tried = self.costs.row(num_sequences), max(range(1, len(hopes)), key=hopes.__getitem__)
            # What it costs if nothing is accepted.
            price_s = _TRIAL_ROUNDS * max(seconds[tried] - seconds[0], _LEAST_PRICE * seconds[0])
            if self._credit_s >= price_s:
                self._credit_s = 0.0
                self._is_trial = True
                return _Plan(tried, self._elapsed_s + _TRIAL_ROUNDS * seconds[tried])
        return _Plan(current, self._elapsed_s + self._planned_s)

    def _hopes(self, num_sequences: int) -> list[float]:
        """Tokens a second and sequence by draft length, as many as there may well be."""
        seconds, deviations = self.costs.row(num_sequences), self.costs.deviations(num_sequences)
        costs = zip(self._yields, seconds, deviations, strict=True)
        return [tokens / taken * (1 + _OPTIMISM * deviation) for tokens, taken, deviation in costs]

    def _plan_lookups(self, num_sequences: int) -> _LookupPlan:
        """Whether to look, and c(n, w) r - c(n, 0) r for every width w."""
        seconds = self.costs.row(num_sequences)
        is_awake = self.lookups.is_awake(num_sequences, is_fresh=self._is_fresh)
        self._is_fresh = False
        gain, time_s = self.lookups.gain(num_sequences), self._planned_s
        if is_trial := self.lookups.is_trial(num_sequences):
            time_s, self._is_trial = _TRIAL_ROUNDS * seconds[0], True
        elif is_awake and gain < _DOUBTFUL_GAIN and self._elapsed_s > self._next_plain_s:
            # What they are held against is known no more when there are always lookups.
            is_awake, time_s = False, _PLAIN_ROUNDS * seconds[0]
            self._next_plain_s = self._elapsed_s + _PLAIN_INTERVAL_ROUNDS * seconds[0]
        rate = num_sequences / seconds[0] * gain
        prices, chances = [(taken - seconds[0]) * rate for taken in seconds], self._chances
        if is_trial:
            self.acceptance.doubt()
            chances = [max(chance, _HOPED_ACCEPTANCE**i) for i, chance in enumerate(chances, 1)]
        return _LookupPlan(self.max_length if is_awake else 0, self._elapsed_s + time_s, prices, chances)

    def _learn_of_lookups(self) -> None:
        rounds, self._lookup_rounds = self._lookup_rounds, []
        by_number: dict[int, list[_Lookup]] = {}
        for round_ in rounds:
            by_number.setdefault(round_.num_sequences, []).append(round_)
        for number, some in by_number.items():
            row = self.costs.row(number)
            values = [self._value(round_, row) for round_ in some]
            tokens, rest, excess = (sum(column) / len(some) for column in zip(*values, strict=True))
            self.lookups.observe(number, tokens, [round_.seconds / row[0] for round_ in some], rest, excess)

    def _value(self, lookup: _Lookup, row: Sequence[float]) -> tuple[float, float, float]:
        """Tokens that a sequence is to get of what was found and the time of verifying them, in rounds without a draft:
        of as many as is best by what is known now, for trials verify hopefully; and what verifying as many as were
        verified loses beside that."""
        number, tokens, taken = lookup.num_sequences, 1.0, lookup.seconds / row[0]
        ways = [(1.0, 1.0)]
        lengths = self._lengths_of_widths(lookup.num_found, number)
        for count, chance, length in zip(lookup.num_found, self._chances, lengths, strict=False):
            tokens += chance * count / number
            ways.append((tokens, between(row, length) / row[0]))
        best_tokens, best_rest = max(ways, key=lambda way: way[0] / (way[1] + taken))
        verified_tokens, verified_rest = ways[lookup.width]
        return best_tokens, best_rest, (verified_rest - verified_tokens) - (best_rest - best_tokens)

    def _learn_if_due(self) -> None:
        """A trial's rounds count at once."""
        if self._is_trial or self._elapsed_s >= self._learned_s + self._planned_s:
            self._learn()

    @property
    def _planned_s(self) -> float:
        """Time for which a choice holds: a share of all time, so that what is new is learned from soon."""
        return min(max(_PLANNED_SHARE * self._elapsed_s, _SHORTEST_PLAN_S), _LONGEST_PLAN_S)

    def _learn(self) -> None:
        """From the rounds since the last time."""
        rounds, self._rounds = self._rounds, []
        taken: dict[tuple[int, int], list[RoundTime]] = {}
        drafted: dict[int, list[Round]] = {}
        for round_ in rounds:
            number, length = round_.num_sequences, whole(round_.draft_length)
            # Looked-up drafts differ from round to round; that some are verified at all is what changes.
            choice = min(length, 1) if self._lookup_plans else length
            if choice != self._last_choice:
                self._num_unsettled = SETTLING_ROUNDS
            if self._num_cold:
                self._num_cold -= 1
            elif self._num_unsettled:
                self._num_unsettled -= 1
            else:
                time = RoundTime(number, round_.draft_length, round_.context, round_.seconds)
                taken.setdefault((number, length), []).append(time)
            self._last_choice = choice
            if not length:
                self._credit_s += round_.seconds * TRIAL_SHARE
            elif round_.num_tried[-1] == number:
                drafted.setdefault(length, []).append(round_)
        if self._lookup_plans:
            for number, count in Counter(round_.num_sequences for round_ in rounds).items():
                self.lookups.pass_rounds(number, count)
        for times in taken.values():
            self.costs.observe(times)
        self.acceptance.observe([(round_.num_tried, round_.num_accepted) for round_ in rounds if round_.draft_length])
        for length, some in drafted.items():
            num_sequences = sum(round_.num_sequences for round_ in some)
            num_accepted = sum(sum(round_.num_accepted) for round_ in some)
            num_lost = sum(round_.num_lost for round_ in some)
            self.acceptance.observe_length(num_sequences, length, num_accepted, num_lost)
        self._chances, self._yields = self.acceptance.chances(), self.acceptance.yields()
        self._learned_s, self._is_trial = self._elapsed_s, False
        if self._lookup_rounds:
            self._learn_of_lookups()
