"""Equality of texts."""

from typing import Any


def exact_reward(text: str, answer: Any, mark: str) -> float:
    """1.0 where the text after the last mark is the answer, spaces around either aside, else 0.0.

    Nothing may follow it: a response that rambles on after its answer has not given one.
    """
    _, found, claimed = text.rpartition(mark)
    return float(bool(found) and claimed.strip() == str(answer).strip())
