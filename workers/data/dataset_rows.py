"""From the rows of a source to problems; what cannot be used is counted and named."""

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from contract.config.dataset import PROMPT_PLACE, HubSource, SourceConfig
from workers.data.chat import Render
from workers.data.layout import Layout, Message, answer_of, messages_of, recognise, value_at
from workers.data.problem import Problem
from workers.data.rows import Row, read_rows
from workers.data.tokenizer import Tokenizer

log = logging.getLogger(__name__)

_NUM_FIRST = 100
"""Rows by which a layout is recognised: single ones may lack a field."""
_NUM_NAMED = 10
"""Rows of each kind that the log names."""

REASONS = {
    "without_prompt": "have no prompt: a text, or chat messages that end with the user's",
    "without_answer": "have no answer",
    "duplicate": "have the prompt of an earlier row",
    "in_validation": "have a prompt of the validation source",
    "too_long": "have a prompt longer than task.max_prompt_tokens",
}
"""Why a row is left out."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A usable row."""

    text: str
    """The row's prompt by itself; two rows that agree in it are one."""
    problem: Problem


@dataclass(slots=True)
class SourceReader:
    """Reads sources, the same way each."""

    render: Render
    tokenizer: Tokenizer
    max_prompt_tokens: int
    left_out: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    """Rows by reason, over all sources."""
    longest_tokens: int = 0
    """Of the prompts that are used."""

    def read(self, source: SourceConfig, where: str, taken: Collection[str] = ()) -> list[Prepared]:
        """The usable rows, one for each prompt that is not taken. Raises ValueError where there is none.

        where: the source's place in the configuration.
        """
        rows = read_rows(source, where)
        first = list(islice(rows, _NUM_FIRST))
        found = _Found(source, where, taken, first)
        for row in chain(first, rows):
            found.add(row)
        prepared = self._prepare(found)
        found.tell()
        for reason, numbers in found.left_out.items():
            self.left_out[reason] += len(numbers)
        if not prepared:
            raise ValueError(found.nothing_usable())
        return prepared

    def _prepare(self, found: "_Found") -> list[Prepared]:
        prepared = []
        for number, text, messages, answer in found.usable:
            if prompt := self._fitting(messages):
                prepared.append(Prepared(text, Problem(prompt, answer)))
            else:
                found.leave_out("too_long", number)
        return prepared

    def _fitting(self, messages: Sequence[Message]) -> str | None:
        """The prompt's text, unless it is too long."""
        prompt = self.render(messages)
        num_tokens = len(self.tokenizer.encode(prompt))
        if num_tokens > self.max_prompt_tokens:
            return None
        self.longest_tokens = max(self.longest_tokens, num_tokens)
        return prompt


class _Found:
    """The rows of one source."""

    def __init__(self, source: SourceConfig, where: str, taken: Collection[str], first: Sequence[Row]) -> None:
        self._source, self._where, self._taken = source, where, taken
        if not first:
            raise ValueError(f"{self._place} has no rows: give a source that has some")
        known: dict[str, Any] = {}
        for row in first:
            known |= {name: value for name, value in row.values.items() if known.get(name) is None}
        self._fields = list(known)
        self._layout = self._recognise(known)
        self._texts: set[str] = set()
        self.num_rows = 0
        self.usable: list[tuple[int, str, list[Message], Any]] = []
        self.left_out: dict[str, list[int]] = {reason: [] for reason in REASONS}

    def add(self, row: Row) -> None:
        """Keep the row, or count why not."""
        self.num_rows += 1
        messages = messages_of(value_at(row.values, self._layout.prompt_field))
        answer = answer_of(value_at(row.values, self._layout.answer_field), self._source.answer_mark)
        text = "\n".join(message["content"] for message in messages or ())
        reasons = {
            "without_prompt": messages is None,
            "without_answer": answer is None,
            "duplicate": text in self._texts,
            "in_validation": text in self._taken,
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), None):
            self.leave_out(reason, row.number)
        elif messages is not None:
            self._texts.add(text)
            self.usable.append((row.number, text, _told(messages, self._source.prompt_template), answer))

    def leave_out(self, reason: str, row: int) -> None:
        self.left_out[reason].append(row)

    @property
    def _place(self) -> str:
        name = "name" if isinstance(self._source, HubSource) else "path"
        return f"{self._where}.{name} = {getattr(self._source, name)}"

    def _recognise(self, known: Mapping[str, Any]) -> Layout:
        layout = recognise(known, self._source, self._where)
        if layout.known_as:
            log.info(
                "%s has the layout %s: prompts in %s, answers in %s.",
                self._where,
                layout.known_as,
                layout.prompt_field,
                layout.answer_field,
            )
        return layout

    def tell(self) -> None:
        """A line of the log for every reason."""
        for reason, rows in self.left_out.items():
            if rows:
                named = ", ".join(map(str, rows[:_NUM_NAMED])) + (", ..." if len(rows) > _NUM_NAMED else "")
                log.warning("%d rows of %s %s; left out: rows %s.", len(rows), self._where, REASONS[reason], named)

    def nothing_usable(self) -> str:
        """The error, with what would mend it."""
        counts = "; ".join(f"{len(rows)} {REASONS[reason]}" for reason, rows in self.left_out.items() if rows)
        return (
            f"{self._place}: none of {self.num_rows} rows can be used: {counts}. Prompts were looked for in "
            f"{self._layout.prompt_field}, answers in {self._layout.answer_field}, of the fields "
            f"{', '.join(self._fields)}: set {self._where}.prompt_field and answer_field, or mend the rows"
        )


def held_out(prepared: Sequence[Prepared], share_fraction: float) -> set[str]:
    """The texts of that share of the rows, at least one, with the lowest hashes: another row changes few of them."""
    count = max(1, round(len(prepared) * share_fraction))
    return set(sorted((row.text for row in prepared), key=_hash)[:count])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _told(messages: list[Message], template: str) -> list[Message]:
    """With the template around the last message."""
    *before, last = messages
    return [*before, {"role": last["role"], "content": template.replace(PROMPT_PLACE, last["content"])}]
