"""What a suffix drafter remembers of each prompt, within a bound."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.rollout.drafters.suffix_index import ROOT, SuffixIndex

_MAX_UNREAD = 2
"""Responses to a prompt: enough to find out whether lookups pay, and no more to read then."""


@dataclass(slots=True)
class Remembered:
    """Responses to one prompt."""

    prompt: tuple[int, ...]
    index: SuffixIndex
    """Of prompt and responses, so that a response's first tokens are found by the prompt before them. Reading takes
    time, which is spent when something is looked up."""
    num_tokens: int
    """Of the prompt and of complete responses."""
    unread: list[tuple[int | None, list[int]]]
    """The newest responses that are not in the index, or their ends and the state in which those go on."""
    read_beginning: int | None = None

    @property
    def beginning(self) -> int:
        """State of the index in which responses begin. The prompt is read when this is first asked for."""
        if self.read_beginning is None:
            state = ROOT
            for token_id in self.prompt:
                state = self.index.extend(state, token_id)
            self.read_beginning = state
        return self.read_beginning

    def read(self) -> None:
        """Put what is unread into the index."""
        for known, token_ids in self.unread:
            state = self.beginning if known is None else known
            for token_id in token_ids:
                state = self.index.extend(state, token_id)
        self.unread.clear()


class SuffixMemory:
    """Indices by prompt; the prompts not seen for longest are forgotten first."""

    def __init__(self, max_stored_tokens: int, below: "SuffixMemory | None" = None) -> None:
        """below: what is known there is known here too, and stays there as it is."""
        self.max_stored_tokens = max_stored_tokens
        self._below = below
        self.num_stored_tokens = 0
        self._by_prompt: dict[tuple[int, ...], Remembered] = {}
        """The prompt seen last is the last."""

    def of(self, token_ids: Sequence[int]) -> Remembered:
        """What is known of a prompt, which is seen again by this."""
        prompt = tuple(token_ids)
        found = self._by_prompt.pop(prompt, None)
        if found is None:
            found = self._from_below(prompt) or Remembered(prompt, SuffixIndex(), len(prompt), [])
            self.num_stored_tokens += found.num_tokens
        self._by_prompt[prompt] = found
        self._forget()
        return found

    def overlaid(self) -> "SuffixMemory":
        """A memory that begins with what this one knows, and leaves it alone."""
        return SuffixMemory(self.max_stored_tokens, below=self)

    def keep(self, remembered: Remembered, num_tokens: int) -> None:
        """A response of so many tokens is complete. What was forgotten while it was in progress stays forgotten."""
        if self._by_prompt.get(remembered.prompt) is remembered:
            self._count(remembered, num_tokens)
            self._forget()

    def put_off(self, remembered: Remembered, token_ids: list[int], state: int | None = None) -> None:
        """A response is complete, at whose end nothing was looked up: that end, and the state before it unless it is
        all of it. It is read when something is looked up; of many the newest."""
        if self._by_prompt.get(remembered.prompt) is remembered:
            remembered.unread.append((state, token_ids))
            if len(remembered.unread) > _MAX_UNREAD:
                self._count(remembered, -len(remembered.unread.pop(0)[1]))
            self._count(remembered, len(token_ids))
            self._forget()

    def _count(self, remembered: Remembered, num_tokens: int) -> None:
        remembered.num_tokens += num_tokens
        self.num_stored_tokens += num_tokens

    def _from_below(self, prompt: tuple[int, ...]) -> Remembered | None:
        known = self._below._by_prompt.get(prompt) if self._below else None
        if known is None:
            return None
        return Remembered(prompt, known.index.copy(), known.num_tokens, known.unread[:], known.read_beginning)

    def _forget(self) -> None:
        """Down to the bound. The prompt seen last goes too where it alone is too much; rows at work keep their own."""
        while self.num_stored_tokens > self.max_stored_tokens:
            oldest = next(iter(self._by_prompt))
            self.num_stored_tokens -= self._by_prompt.pop(oldest).num_tokens
