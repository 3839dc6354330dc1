"""The words of an assertion, and the error that says what is wrong with one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MAX_LENGTH = 400
_MAX_SHOWN = 40
_EQUAL_SIGNS = {"≥": ">=", "≤": "<="}

Kind = Literal["name", "number", "operator", "sign", "dots", "end"]
_PATTERN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)?)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<operator>>=|<=|>|<|≥|≤)"
    r"|(?P<dots>\.\.)"
    r"|(?P<sign>[-+*()])"
)


class GateSyntaxError(ValueError):
    """An assertion that cannot be read. Its text says where, what was found and what would fit."""

    def __init__(self, position: int, found: str, expected: str) -> None:
        self.position = position
        """Of the first character that does not fit, from 0."""
        self.found, self.expected = found, expected
        super().__init__(f"at character {position + 1}: found {found}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Token:
    """One word or sign."""

    kind: Kind
    text: str
    position: int

    def shown(self) -> str:
        return "the end" if self.kind == "end" else quoted(self.text)


def quoted(text: str) -> str:
    """For messages: short, and on one line."""
    cut = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return cut if cut.isprintable() and cut != " " else repr(cut)


def tokens(text: str) -> Iterator[Token]:
    """The words in order, and the end. Raises GateSyntaxError."""
    if len(text) > MAX_LENGTH:
        raise GateSyntaxError(MAX_LENGTH, f"{len(text)} characters", f"{MAX_LENGTH} at most")
    position = 0
    while position < len(text):
        if text[position] in " \t":
            position += 1
            continue
        match = _PATTERN.match(text, position)
        if match is None:
            raise GateSyntaxError(position, quoted(text[position]), "a name, a number, or one of >= <= > < + - * ( )")
        word = match.group()
        yield Token(match.lastgroup, _EQUAL_SIGNS.get(word, word), position)  # type: ignore[arg-type]
        position = match.end()
    yield Token("end", "", len(text))
