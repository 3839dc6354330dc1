"""An anytime-valid test over a run for a fault that may begin at any step.

Shape suffixes: S numbers of one step's statistic, J periods.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_MAX_PERIODS_OF_A_LENGTH = 6


@dataclass(slots=True)
class _Period:
    """Consecutive steps, and the stake of the bettor who began with the first of them."""

    num_steps: int
    statistic_S: Tensor
    log_stake: float


class SequentialTest:
    """An e-process for "every step so far was exact" against "from some step on it was not".

    E_t = sum_{j <= t} w_j B_{j..t} + (T - t) / T, with w_j = 1 / T for a run of T steps and B_{j..t} the likelihood
    ratio of steps j to t. It begins at 1 and its expectation stays 1 under exact sampling, so the chance that it ever
    reaches 1 / a is at most a (Ville 1939), however often one looks; a fault that begins at step j costs ln T more
    than one known to begin there (Shin, Ramdas and Rinaldo 2023, "E-detectors", arXiv:2203.03532).

    A step's statistic must add up over steps. Starts that lie close together and far back are merged, as in
    ADWIN (Bifet and Gavalda 2007): the later bettor hands his capital to the earlier one, which no expectation minds.
    """

    def __init__(self, num_steps: int, size: int, log_evidence: Callable[[Tensor], Tensor]) -> None:
        """size: S. log_evidence: ln B [J] of statistics [J, S]."""
        self._log_share = -math.log(num_steps)
        self._num_steps, self._num_seen, self._size = num_steps, 0, size
        self._log_evidence = log_evidence
        self._periods: list[_Period] = []

    def observe(self, statistic_S: Tensor) -> None:
        """One step's statistic."""
        self._num_seen += 1
        self._periods.append(_Period(1, statistic_S.double().clone(), self._log_share))
        self._merge()

    def statistics(self) -> Tensor:
        """[J, S]: since the start of each period that is bet on, the oldest first."""
        if not self._periods:
            return torch.zeros(0, self._size, dtype=torch.float64)
        return torch.stack([period.statistic_S for period in self._periods]).flip(0).cumsum(0).flip(0)

    def log_capitals(self) -> Tensor:
        """[J]: ln of what each bettor has; together at most E_t."""
        stakes_J = torch.tensor([period.log_stake for period in self._periods], dtype=torch.float64)
        return stakes_J + self._log_evidence(self.statistics())

    def log_e_value(self) -> float:
        """ln E_t; -inf where everything was given up by a restart after the last step."""
        idle = max(self._num_steps - self._num_seen, 0) / self._num_steps
        return torch.logaddexp(torch.tensor(idle, dtype=torch.float64).log(), self.log_capitals().logsumexp(0)).item()

    def num_steps_since(self, period: int) -> int:
        """Steps from the start of a period on."""
        return sum(p.num_steps for p in self._periods[period:])

    def newest(self, num_steps: int) -> Tensor | None:
        """[S]: the statistic of the latest steps, at least so many; None where there were fewer."""
        count, total = 0, None
        for period in reversed(self._periods):
            count, total = count + period.num_steps, period.statistic_S + (0 if total is None else total)
            if count >= num_steps:
                return total
        return None

    def restart(self) -> None:
        """Forget what was bet so far. Capital is given up, never gained, so the false-alarm rate stays what it was."""
        self._periods.clear()

    def state(self) -> dict[str, object]:
        """What load_state() takes, as JSON knows it."""
        periods = [[p.num_steps, p.log_stake, p.statistic_S.tolist()] for p in self._periods]
        return {"num_seen": self._num_seen, "periods": periods}

    def load_state(self, num_seen: int, periods: Sequence[tuple[int, float, list[float]]]) -> None:
        """Go on from there."""
        self._num_seen = num_seen
        self._periods = [
            _Period(count, torch.tensor(statistic, dtype=torch.float64), stake) for count, stake, statistic in periods
        ]

    def _merge(self) -> None:
        """Join the two oldest periods of a length that has too many; lengths are powers of two, the longest first."""
        length = 1
        while True:
            alike = [i for i, period in enumerate(self._periods) if period.num_steps == length]
            if len(alike) <= _MAX_PERIODS_OF_A_LENGTH:
                return
            self._join(alike[0])
            length *= 2

    def _join(self, at: int) -> None:
        capitals, stakes = self.log_capitals(), self._periods[at].log_stake
        older, newer = self._periods[at : at + 2]
        log_ratio = capitals[at].item() - stakes
        log_stake = torch.logaddexp(capitals[at], capitals[at + 1]).item() - log_ratio
        joined = _Period(older.num_steps + newer.num_steps, older.statistic_S + newer.statistic_S, log_stake)
        self._periods[at : at + 2] = [joined]
