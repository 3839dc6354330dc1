"""The tests of a program, as datasets give them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assertions:
    """Pieces of Python that raise where the program is wrong; they see its functions."""

    pieces: list[str]


@dataclass(frozen=True, slots=True)
class Examples:
    """(what the program reads, what it must print)."""

    pairs: list[tuple[str, str]]


def parse_tests(answer: Any) -> Assertions | Examples:
    """Tests from a dataset's field.

    Assertions are a text, or a list of texts. Examples are an object with the lists `inputs` and `outputs`, or a list
    of objects with `input` and `output`; both may also be a text of JSON. Raises ValueError for anything else.
    """
    if isinstance(answer, str) and answer.lstrip().startswith(("{", "[")):
        try:
            answer = json.loads(answer)
        except ValueError:
            return Assertions([answer])  # Python may begin with a bracket, too
    if isinstance(answer, str):
        return Assertions([answer])
    pairs = _pairs(answer)
    if pairs:
        return Examples(pairs)
    if isinstance(answer, Sequence) and answer and all(isinstance(piece, str) for piece in answer):
        return Assertions(list(answer))
    raise ValueError(
        f"tests {json.dumps(answer)[:200]} are neither texts of Python, nor inputs and outputs of equal number"
    )


def _pairs(answer: Any) -> list[tuple[str, str]]:
    if isinstance(answer, Mapping):
        inputs, outputs = answer.get("inputs"), answer.get("outputs")
        if isinstance(inputs, list) and isinstance(outputs, list) and len(inputs) == len(outputs):
            return [(_lines(given), _lines(wanted)) for given, wanted in zip(inputs, outputs, strict=True)]
        return []
    if isinstance(answer, list) and all(
        isinstance(pair, Mapping) and pair.keys() >= {"input", "output"} for pair in answer
    ):
        return [(_lines(pair["input"]), _lines(pair["output"])) for pair in answer]
    return []


def _lines(value: Any) -> str:
    """Some datasets give lines one by one."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
