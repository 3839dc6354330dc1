"""Mathematical equality of a response's stated answer with the known one."""

import logging
from typing import Any

from math_verify import parse, verify

_BOX = "\\boxed"
_WORD = "answer:"
_AROUND = " \t*$."
"""Emphasis, dollar signs and full stops around an answer say nothing about it."""

logging.getLogger("math_verify").setLevel(
    logging.ERROR
)  # it warns that the caller minds the time, which the caller does


def math_reward(text: str, answer: Any) -> float:
    """1.0 where the stated answer equals the known one by math-verify, else 0.0, also where none is stated.

    Raises ValueError for a known answer that is not mathematics. Takes as long as sympy takes: mind the time.
    """
    known = _parse(str(answer))
    if not known:
        raise ValueError(f"the dataset's answer {answer!r} cannot be read as mathematics")
    stated = stated_answer(text)
    if stated is None:
        return 0.0
    return float(verify(known, _parse(stated), timeout_seconds=None, raise_on_error=True))


def stated_answer(text: str) -> str | None:
    """What stands in the last \\boxed{} or, where that comes later, on the line after the last `Answer:`."""
    in_box, after_word = text.rfind(_BOX), text.lower().rfind(_WORD)
    if after_word > in_box:
        line = text[after_word + len(_WORD) :].lstrip(" \t*\n").partition("\n")[0]
        return line.strip(_AROUND) or None
    return _braced(text[in_box + len(_BOX) :]) if in_box >= 0 else None


def _braced(text: str) -> str | None:
    """What the braces at the beginning enclose; None where they are not closed."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[1:place].strip(_AROUND) or None if place else None
    return None


def _parse(expression: str) -> list[Any]:
    return list(parse(f"${expression.strip(_AROUND)}$", parsing_timeout=None, raise_on_error=True))
