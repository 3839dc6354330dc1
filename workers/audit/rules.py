"""When something is wrong with a run besides its samples' distribution: one rule for each alarm.

A rule looks at one step and answers True where it is wrong, False where it is right again, and None where it is neither
and the alarm stays as it is: between the two limits lies the hysteresis that keeps an alarm from flickering.
"""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from workers.rollout.engine import SpeculationCounters

_COLLAPSED_LENGTH = 1.02
_RECOVERED_LENGTH = 1.05
_MIN_DRAFTS = 30
"""Rounds from which an acceptance length of 1 is no accident."""

_MISMATCH_FLOOR = 0.001
"""Part of token_mult_prob_error above 1 that growth is measured from: float32 on both sides stays far below."""
_NUM_REMEMBERED_STEPS = 20

_KEPT_SHARE = 0.8
"""Of the earlier steps' counts in the smoothed acceptance: five steps or so."""
_MIN_SMOOTHED_DRAFTS = 200
_NUM_STANDARD_ERRORS = 4.0
_SHARE_OF_EXPECTATION = 0.85


def is_collapsed(counters: SpeculationCounters) -> bool | None:
    """Whether hardly anything is accepted though something is drafted."""
    length = counters.acceptance_length
    if length is None or counters.num_drafts < _MIN_DRAFTS:
        return None
    return True if length < _COLLAPSED_LENGTH else False if length > _RECOVERED_LENGTH else None


def is_slower(ratio: float, high: float) -> bool | None:
    """Whether a probe is certain that speculation loses time, its interval's upper end below 1; right again where it
    measures a gain."""
    return True if high < 1 else False if ratio >= 1 else None


@dataclass(slots=True)
class MismatchRule:
    """Engine and trainer against a limit, and against what they were in this run before."""

    max_ratio: float
    max_growth: float
    usual: list[float] = field(default_factory=list)
    """token_mult_prob_error less 1 of the latest steps that were right."""

    def judge(self, ratio: float) -> bool | None:
        """ratio: the step's token_mult_prob_error."""
        excess, limit = ratio - 1, self.limit()
        if not excess <= limit:  # NaN too
            return True
        if excess > limit / 2 and excess > 1.5 * self._usual_excess():
            return None
        self.usual = [*self.usual, excess][-_NUM_REMEMBERED_STEPS:]
        return False

    def limit(self) -> float:
        """Of the part above 1."""
        fixed = self.max_ratio - 1
        return min(fixed, max(_MISMATCH_FLOOR, self.max_growth * self._usual_excess())) if self.usual else fixed

    def _usual_excess(self) -> float:
        return median(self.usual) if self.usual else 0.0

    def state(self) -> dict[str, Any]:
        return {"usual": self.usual}


@dataclass(slots=True)
class DecayRule:
    """Smoothed acceptance at the first draft position, which no draft length changes, against its best, and against
    what the draft's own training expects of it."""

    max_fall: float
    num_drafts: float = 0.0
    num_accepted: float = 0.0
    best: float = 0.0
    expected: float = 0.0
    """Of the latest draft training; 0 where there was none."""

    def judge(self, counters: SpeculationCounters) -> bool | None:
        """None too while there are few drafts."""
        if not counters.num_drafts:
            return None
        self.num_drafts = _KEPT_SHARE * self.num_drafts + counters.num_drafts
        self.num_accepted = _KEPT_SHARE * self.num_accepted + counters.accepted_at_position[0]
        if self.num_drafts < _MIN_SMOOTHED_DRAFTS:
            return None
        self.best = max(self.best, self.rate)
        noise = _NUM_STANDARD_ERRORS * math.sqrt(self.best * (1 - self.best) / self.num_drafts)
        falls = self.best - self.rate, self._fair_share() - self.rate
        limits = self.max_fall * self.best, self.max_fall * self._fair_share()
        if any(fall > max(limit, noise) for fall, limit in zip(falls, limits, strict=True)):
            return True
        return False if all(fall <= limit / 2 for fall, limit in zip(falls, limits, strict=True)) else None

    @property
    def rate(self) -> float:
        """Smoothed share of rounds whose first drafted token was accepted."""
        return self.num_accepted / self.num_drafts

    def _fair_share(self) -> float:
        """What generation should reach of the expectation: its rounds begin after corrections, where drafting is
        harder than at the average token."""
        return _SHARE_OF_EXPECTATION * self.expected

    def state(self) -> dict[str, Any]:
        names = ("num_drafts", "num_accepted", "best", "expected")
        return {name: getattr(self, name) for name in names}
