"""Suffix lookup: what most often followed the newest tokens in responses to the same prompt, earlier ones and those of
the group in progress (SuffixDecoding, arXiv:2411.04975; DAS, arXiv:2511.13841). Nothing is trained.
"""

from collections.abc import Sequence

from torch import Tensor

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.drafters.lookup import to_draft
from workers.rollout.drafters.suffix_index import ROOT
from workers.rollout.drafters.suffix_memory import Remembered, SuffixMemory
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler

_MIN_PROBABILITY = 0.1
"""Estimated chance of being accepted whole below which a proposal ends. On responses of the shipped example, at k = 6,
that spares 20 % of the drafted tokens and costs 2 % of the acceptance length, against never ending before k; 0.2 would
spare 45 % and cost 9 %. The longest of a round's proposals decides what the round costs, so that the mark is low."""

_LARGEST_ROUND = MAX_DRAFT_LENGTH + 1
"""Tokens. Where a response lacks more of the index, nothing was looked up of late."""


class SuffixDrafter:
    """Remembers responses from call to call, so that what it proposes depends on the calls before."""

    tap_layers: tuple[int, ...] = ()

    def __init__(self, min_match_tokens: int, max_match_tokens: int, max_stored_tokens: int) -> None:
        if not 1 <= min_match_tokens <= max_match_tokens:
            raise ValueError(
                f"min_match_tokens = {min_match_tokens}, max_match_tokens = {max_match_tokens}: "
                "must be at least 1, and the first not above the second"
            )
        self.min_match_tokens, self.max_match_tokens = min_match_tokens, max_match_tokens
        self.memory = SuffixMemory(max_stored_tokens)

    def forgetful(self) -> "SuffixDrafter":
        copy = SuffixDrafter(self.min_match_tokens, self.max_match_tokens, self.memory.max_stored_tokens)
        copy.memory = self.memory.overlaid()
        return copy

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> "SuffixSession":
        return SuffixSession(self, num_rows)


class _Place:
    """A row's place among the responses to its prompt."""

    __slots__ = ("num_known", "remembered", "state")

    def __init__(self, remembered: Remembered) -> None:
        self.remembered, self.state = remembered, ROOT
        self.num_known = 0
        """Response tokens that the index holds."""

    def advance(self, response: Sequence[int]) -> None:
        """Take note of what the response has become."""
        extend, state = self.remembered.index.extend, self.state if self.num_known else self.remembered.beginning
        for token_id in response:
            state = extend(state, token_id)
        self.state = state
        self.num_known += len(response)


class SuffixSession:
    """The rows of one call."""

    def __init__(self, drafter: SuffixDrafter, num_rows: int) -> None:
        self._drafter = drafter
        self._prompts: Sequence[Sequence[int]] = ()
        self._places: list[_Place | None] = [None] * num_rows

    def prefill(self, block: PromptBlock) -> None:
        self._prompts = block.prompts

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        memory = self._drafter.memory
        for row, prompt in zip(rows.tolist(), prompts.tolist(), strict=True):
            self._places[row] = _Place(memory.of(self._prompts[prompt]))

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft | None:
        # All rows first, then proposals: samples of a group learn from each other's last round.
        drafter, places = self._drafter, self._places
        for index, row in enumerate(rows):
            place = places[index]
            assert place is not None
            if place.remembered.unread:
                place.remembered.read()
            place.advance(row.token_ids[row.num_prompt_tokens + place.num_known :])
        proposals = [
            place.remembered.index.follow(
                place.state,
                draft_length,
                min_match=drafter.min_match_tokens,
                max_match=drafter.max_match_tokens,
                min_probability=_MIN_PROBABILITY,
            )
            for place in places[: len(rows)]
            if place is not None
        ]
        return to_draft(proposals, start_R.device)

    def observe(self, verified: Verified) -> None:
        """The rows hold what was emitted."""

    def retire(self, row: int, token_ids: list[int]) -> None:
        place = self._places[row]
        assert place is not None
        self._places[row] = None
        memory, rest = self._drafter.memory, token_ids[place.num_known :]
        if not place.num_known:
            memory.put_off(place.remembered, rest)
        elif len(rest) > _LARGEST_ROUND:
            memory.keep(place.remembered, place.num_known)
            memory.put_off(place.remembered, rest, place.state)
        else:
            place.advance(rest)
            memory.keep(place.remembered, len(token_ids))

    def move_row(self, source: int, target: int) -> None:
        self._places[target], self._places[source] = self._places[source], None
