"""The arithmetic task: sums with their working written out digit by digit, so that answers can be checked exactly."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract.config.task import ArithmeticTask
from workers.data.problem import Problem, Split

_FILLERS = ("so ", "then ", "now ", "next ")
_SMALLEST_TERM = 10
_HELD_OUT_SHARE = 16
"""One prompt in this many is held out for validation."""
_MAX_TRIES = 10_000
"""Draws for one problem; a split of one prompt in a hundred is missed that often once in 10^43 problems."""


@dataclass(frozen=True, slots=True)
class WorkedProblem(Problem):
    """A prompt such as `12+34+56+78=`, its sum, and how it is worked out."""

    solution: str
    """One worked solution, up to and including `#` and the answer."""


class ArithmeticData:
    """The problems of an arithmetic task, which no file holds."""

    metrics: Mapping[str, float] = {}

    def __init__(self, task: ArithmeticTask, seed: int) -> None:
        self._task, self._seed = task, seed

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._task.model_dump(mode="json")

    def split(self, split: Split) -> "ArithmeticProblems":
        return ArithmeticProblems(self._task, self._seed, split)


class ArithmeticProblems:
    """Problems by position: problem(i) depends on the seed, the split and i alone.

    Every possible prompt belongs either to validation or to all other splits, decided by a hash of its text.
    """

    def __init__(self, task: ArithmeticTask, seed: int, split: Split) -> None:
        self._task = task
        self._seed = seed
        self._split = split

    def problem(self, index: int) -> WorkedProblem:
        """The problem at a position from 0. Raises ValueError where the task has no prompt of this split."""
        rng = random.Random(f"{self._seed}/{self._split}/{index}")  # noqa: S311 (no secret)
        for _ in range(_MAX_TRIES):
            terms = [rng.randint(_SMALLEST_TERM, self._task.max_term) for _ in range(self._task.num_terms)]
            prompt = "+".join(map(str, terms)) + "="
            if is_held_out(prompt) == (self._split == "validation"):
                return WorkedProblem(prompt, sum(terms), _solve(terms, rng))
        raise ValueError(
            f"none of {_MAX_TRIES} prompts drawn with task.num_terms = {self._task.num_terms} and task.max_term = "
            f"{self._task.max_term} belongs to {self._split}: make one of them larger"
        )

    def problems(self, start: int, count: int) -> list[WorkedProblem]:
        """The problems at positions start to start + count - 1."""
        return [self.problem(index) for index in range(start, start + count)]

    def distinct(self, count: int) -> list[WorkedProblem]:
        """The first problems; one may come again where the task has few."""
        return self.problems(0, count)


def is_held_out(prompt: str) -> bool:
    """Whether a prompt is reserved for validation, whatever the seed."""
    return hashlib.sha256(prompt.encode()).digest()[0] % _HELD_OUT_SHARE == 0


def _solve(terms: list[int], rng: random.Random) -> str:
    """Adds the terms in random order, a filler word before each sum, every column written as digit+digit+carry=sum."""
    order = terms[:]
    rng.shuffle(order)
    total, working = order[0], ""
    for term in order[1:]:
        working += f"{rng.choice(_FILLERS)}{total}+{term}:{_columns(total, term)}"
        total += term
        working += f" >{total};"
    return f"{working}#{total}"


def _columns(left: int, right: int) -> str:
    """Column sums from the units up: ` 7+5+0=12 1+2+1=4` for 17+25."""
    carry, written = 0, ""
    for place in range(max(len(str(left)), len(str(right)))):
        a, b = left // 10**place % 10, right // 10**place % 10
        column = a + b + carry
        written += f" {a}+{b}+{carry}={column}"
        carry = column // 10
    return written
