"""Counts by position."""

from collections.abc import Sequence
from itertools import accumulate


def at_least(numbers: Sequence[int], width: int) -> list[int]:
    """How many of the numbers reach each position from 1 to width."""
    exactly = [0] * (width + 1)
    for number in numbers:
        exactly[min(number, width)] += 1
    return list(accumulate(exactly[:0:-1]))[::-1]
