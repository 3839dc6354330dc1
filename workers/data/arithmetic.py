"""The arithmetic task: sums with their working written out digit by digit, so that answers can be checked exactly."""

import hashlib
import random
from dataclasses import dataclass
from typing import Literal

from contract.config.task import ArithmeticTask

Split = Literal["warm_up", "draft_pretraining", "train", "validation"]

_FILLERS = ("so ", "then ", "now ", "next ")
_SMALLEST_TERM = 10
_HELD_OUT_SHARE = 16
"""One prompt in this many is held out for validation."""
_MAX_TRIES = 10_000
"""Draws for one problem; a split of one prompt in a hundred is missed that often once in 10^43 problems."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One prompt and what is known about it."""

    prompt: str
    """`12+34+56+78=`"""
    solution: str
    """One worked solution, up to and including `#` and the answer."""
    answer: int


class ArithmeticProblems:
    """An endless sequence of problems with random access: problem(i) depends on the seed, the split and i alone.

    A position in it is a plain number, so a resumed run goes on with the very prompts that would have followed.
    Every possible prompt belongs either to validation or to all other splits, decided by a hash of its text.
    """

    def __init__(self, task: ArithmeticTask, seed: int, split: Split) -> None:
        self._task = task
        self._seed = seed
        self._split = split

    def problem(self, index: int) -> Problem:
        """The problem at a position from 0. Raises ValueError where the task has no prompt of this split."""
        rng = random.Random(f"{self._seed}/{self._split}/{index}")  # noqa: S311 (no secret)
        for _ in range(_MAX_TRIES):
            terms = [rng.randint(_SMALLEST_TERM, self._task.max_term) for _ in range(self._task.num_terms)]
            prompt = "+".join(map(str, terms)) + "="
            if is_held_out(prompt) == (self._split == "validation"):
                return Problem(prompt, _solve(terms, rng), sum(terms))
        raise ValueError(
            f"none of {_MAX_TRIES} prompts drawn with task.num_terms = {self._task.num_terms} and task.max_term = "
            f"{self._task.max_term} belongs to {self._split}: make one of them larger"
        )

    def problems(self, start: int, count: int) -> list[Problem]:
        """The problems at positions start to start + count - 1."""
        return [self.problem(index) for index in range(start, start + count)]


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
