"""Suffix lookup: what most often followed the newest tokens in responses to the same prompt, earlier ones and those of
the group in progress (SuffixDecoding, arXiv:2411.04975; DAS, arXiv:2511.13841). Nothing is trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.drafters.lookup import Rule
from workers.rollout.drafters.suffix_memory import Grown, Remembered, SuffixMemory
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler

_MIN_PROBABILITY = 0.1
"""Estimated chance of being accepted whole below which a proposal ends. On responses of the shipped example, at k = 6,
that spares 20 % of the drafted tokens and costs 2 % of the acceptance length, against never ending before k; 0.2 would
spare 45 % and cost 9 %. The longest of a round's proposals decides what the round costs, so that the mark is low."""


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


@dataclass(slots=True)
class _Place:
    """A row's place among the responses to its prompt."""

    remembered: Remembered
    state: int
    num_known: int = 0
    """Response tokens that the index holds."""


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
            remembered = memory.of(self._prompts[prompt])
            self._places[row] = _Place(remembered, remembered.beginning)

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft | None:
        # All rows first, then proposals: samples of a group learn from each other's last round.
        drafter, places = self._drafter, [place for place in self._places[: len(rows)] if place is not None]
        texts = [
            Grown(place.remembered.index, place.state, row.token_ids[row.num_prompt_tokens + place.num_known :])
            for row, place in zip(rows, places, strict=True)
        ]
        rule = Rule(draft_length, drafter.min_match_tokens, drafter.max_match_tokens, _MIN_PROBABILITY)
        states, proposals = drafter.memory.look_up(texts, rule)
        for place, state, text in zip(places, states, texts, strict=False):
            place.state = state
            place.num_known += len(text.token_ids)
        return proposals.to_draft(start_R.device)

    def observe(self, verified: Verified) -> None:
        """The rows hold what was emitted."""

    def retire(self, row: int, token_ids: list[int]) -> None:
        place = self._places[row]
        assert place is not None
        self._places[row] = None
        end = Grown(place.remembered.index, place.state, token_ids[place.num_known :])
        self._drafter.memory.keep(place.remembered, len(token_ids), end)

    def move_row(self, source: int, target: int) -> None:
        self._places[target], self._places[source] = self._places[source], None
