"""Counting identities of speculative generation: what must hold exactly, whatever was drawn."""

from collections.abc import Iterator, Sequence
from typing import Protocol


class Counters(Protocol):
    """See workers.rollout.engine.SpeculationCounters."""

    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    accepted_at_position: list[int]


class RoundLike(Protocol):
    """See workers.rollout.engine.RoundRecord."""

    @property
    def drafted(self) -> list[int]: ...
    @property
    def num_accepted(self) -> int: ...
    @property
    def emitted(self) -> int | None: ...


def broken_counts(counters: Counters, num_tokens: int, num_responses: int) -> Iterator[str]:
    """Each identity of a step's counters that does not hold, in words.

    num_tokens: response tokens of the step. Every drafted round emits what it accepted and one correction or bonus
    token, except that a response may end inside the accepted block, once; rounds without a draft only add tokens.
    """
    positions = counters.accepted_at_position
    accepted, drafts, drafted = counters.num_accepted_tokens, counters.num_drafts, counters.num_draft_tokens
    if sum(positions) != accepted:
        yield f"accepted tokens by position add up to {sum(positions)}, not to {accepted}"
    if any(later > earlier for earlier, later in zip([drafts, *positions], positions, strict=False)):
        yield f"a later position was accepted in more rounds than one before it: {positions} of {drafts} rounds"
    if accepted > drafted:
        yield f"{accepted} tokens were accepted, but {drafted} drafted: acceptance length above k + 1"
    if drafted < drafts:
        yield f"{drafts} rounds had a draft, but only {drafted} tokens were drafted"
    if drafts and num_tokens < accepted + drafts - num_responses:
        yield f"{num_tokens} tokens are fewer than {accepted} accepted and {drafts} corrections and bonuses"


def broken_rounds(rounds: Sequence[RoundLike], token_ids: Sequence[int]) -> Iterator[str]:
    """Each identity of one recorded response that does not hold: its rounds, put together, are the response."""
    for index, played in enumerate(rounds):
        if not 0 <= played.num_accepted <= len(played.drafted):
            yield f"round {index} accepted {played.num_accepted} of {len(played.drafted)} drafted tokens"
        if played.emitted is None and (played.num_accepted == 0 or index < len(rounds) - 1):
            yield f"round {index} emitted no token of its own, though the response did not end inside its draft"
    emitted = [
        token
        for played in rounds
        for token in [*played.drafted[: played.num_accepted], *([] if played.emitted is None else [played.emitted])]
    ]
    if emitted != list(token_ids):
        yield f"the response has {len(token_ids)} tokens that are not the {len(emitted)} which its rounds emitted"
