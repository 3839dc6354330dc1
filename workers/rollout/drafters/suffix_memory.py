"""What a suffix drafter remembers of each prompt, within a bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

from workers.rollout.drafters.lookup import Proposals, Rule
from workers.rollout.drafters.suffix_index import ROOT, SuffixIndex
from workers.rollout.native.library import load
from workers.rollout.native.suffix_index import NativeSuffixIndex

_MAX_UNREAD = 64
"""Ends of responses that are read together, which takes a fraction of the time."""


class Index(Protocol):
    """SuffixIndex, which says what this is, or its compiled twin."""

    def extend(self, state: int, token_ids: Sequence[int]) -> int: ...

    def copy(self) -> Self: ...

    @staticmethod
    def look_up(
        indices: Sequence[Any],
        states: Sequence[int],
        new_tokens: Sequence[Sequence[int]],
        num_followed: int,
        rule: Rule,
    ) -> tuple[Sequence[int], Proposals]: ...


def index_type() -> type[Index]:
    """The compiled one where there is a compiler."""
    return SuffixIndex if load() is None else NativeSuffixIndex


class Grown(NamedTuple):
    """What a text that stood at a state of an index went on with."""

    index: Index
    state: int
    token_ids: Sequence[int]


@dataclass(slots=True)
class Remembered:
    """Responses to one prompt."""

    prompt: tuple[int, ...]
    index: Index
    """Of prompt and responses, so that a response's first tokens are found by the prompt before them."""
    beginning: int
    """State of the index in which responses begin."""
    num_tokens: int
    """Of the prompt and of complete responses."""


class SuffixMemory:
    """Indices by prompt; the prompts not seen for longest are forgotten first."""

    def __init__(self, max_stored_tokens: int, below: "SuffixMemory | None" = None) -> None:
        """below: what is known there is known here too, and stays there as it is."""
        self.max_stored_tokens = max_stored_tokens
        self.index_type = index_type()
        self._below = below
        self.num_stored_tokens = 0
        self._by_prompt: dict[tuple[int, ...], Remembered] = {}
        """The prompt seen last is the last."""
        self._unread: list[Grown] = []

    def of(self, token_ids: Sequence[int]) -> Remembered:
        """What is known of a prompt, which is seen again by this."""
        prompt = tuple(token_ids)
        found = self._by_prompt.pop(prompt, None)
        if found is None:
            found = self._from_below(prompt) or self._beginning_with(prompt)
            self.num_stored_tokens += found.num_tokens
        self._by_prompt[prompt] = found
        self._forget()
        return found

    def overlaid(self) -> "SuffixMemory":
        """A memory that begins with what this one knows, and leaves it alone."""
        self.read()
        return SuffixMemory(self.max_stored_tokens, below=self)

    def look_up(self, texts: Sequence[Grown], rule: Rule) -> tuple[Sequence[int], Proposals]:
        """The texts' new states, and what most often followed them, once all that is unread was read."""
        some = [*texts, *self._unread]
        self._unread = []
        indices, states, token_ids = zip(*some, strict=True)
        return self.index_type.look_up(indices, states, token_ids, len(texts), rule)

    def keep(self, remembered: Remembered, num_tokens: int, end: Grown) -> None:
        """A response of so many tokens is complete; its end is read soon. What was forgotten while it was in progress
        stays forgotten."""
        if self._by_prompt.get(remembered.prompt) is not remembered:
            return
        remembered.num_tokens += num_tokens
        self.num_stored_tokens += num_tokens
        self._forget()
        self._unread.append(end)
        if len(self._unread) >= _MAX_UNREAD:
            self.read()

    def read(self) -> None:
        """What is unread."""
        if self._unread:
            self.look_up((), Rule(0, 0, 0, 0.0))

    def _beginning_with(self, prompt: tuple[int, ...]) -> Remembered:
        index = self.index_type()
        return Remembered(prompt, index, index.extend(ROOT, prompt), len(prompt))

    def _from_below(self, prompt: tuple[int, ...]) -> Remembered | None:
        known = self._below._by_prompt.get(prompt) if self._below else None
        if known is None:
            return None
        return Remembered(prompt, known.index.copy(), known.beginning, known.num_tokens)

    def _forget(self) -> None:
        """Down to the bound. The prompt seen last goes too where it alone is too much; rows at work keep their own."""
        while self.num_stored_tokens > self.max_stored_tokens:
            oldest = next(iter(self._by_prompt))
            self.num_stored_tokens -= self._by_prompt.pop(oldest).num_tokens
