"""From what scheduler and workers told to the protocol's records.

Shape suffixes: K a sequence's drafted tokens in one round, M tested tokens, N tokens kept of a distribution.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch

from workers.rollout.engine import DraftEvidence, RoundRecord
from workers.rollout.vllm.round_tap import PlayedRound
from workers.rollout.vllm.verification_log import MAX_KEPT_OF_DRAFT, Verified

_SMALLEST_PROBABILITY = 1e-38
"""Floor of recorded probabilities, so that their logarithms stay finite."""


def round_records(
    token_ids: Sequence[int], rounds: Sequence[PlayedRound], verified: Sequence[Verified]
) -> list[RoundRecord]:
    """A response's rounds in order; tokens between the drafted ones were emitted one a round."""
    records: list[RoundRecord] = []
    at = 0
    for played, probs in zip(rounds, verified, strict=True):
        records += [RoundRecord([], 0, token, [], []) for token in token_ids[at : played.start]]
        at = played.start + played.num_kept
        emitted = token_ids[at - 1] if played.num_kept > played.num_accepted else None
        q, p = (
            part.clamp_min(_SMALLEST_PROBABILITY).log().tolist() for part in (probs.draft_probs_K, probs.policy_probs_K)
        )
        records.append(RoundRecord(played.drafted, min(played.num_accepted, played.num_kept), emitted, q, p))
    return records + [RoundRecord([], 0, token, [], []) for token in token_ids[at:]]


def draft_evidence(
    completions: Sequence[int], rounds: Mapping[int, Sequence[PlayedRound]], verified: Mapping[int, Sequence[Verified]]
) -> DraftEvidence | None:
    """Tested positions of these completions; None where nothing was drafted in them."""
    parts = [part for index in completions for part in _tested(index, rounds.get(index, ()), verified.get(index, ()))]
    if not parts:
        return None
    columns = [torch.cat(column) for column in zip(*(part[:5] for part in parts), strict=True)]
    width = max(part[5].shape[1] for part in parts)
    top_ids = torch.cat([_widen(part[5], width, -1) for part in parts])
    top_probs = torch.cat([_widen(part[6], width, 0) for part in parts])
    return DraftEvidence(*columns, top_ids, top_probs)


def _tested(
    index: int, rounds: Sequence[PlayedRound], verified: Sequence[Verified]
) -> Iterator[tuple[torch.Tensor, ...]]:
    """By round: the accepted positions and the one that was rejected, as far as the response goes."""
    for played, probs in zip(rounds, verified, strict=True):
        number = min(played.num_accepted + 1, len(played.drafted), played.num_kept)
        at_M = torch.arange(number)
        yield (
            torch.full((number,), index),
            played.start + at_M,
            torch.tensor(played.drafted[:number]),
            at_M < played.num_accepted,
            probs.draft_probs_K[:number],
            probs.top_ids_KN[:number],
            probs.top_probs_KN[:number],
        )


def _widen(tensor_MN: torch.Tensor, width: int, value: int) -> torch.Tensor:
    assert width <= MAX_KEPT_OF_DRAFT
    return torch.nn.functional.pad(tensor_MN, (0, width - tensor_MN.shape[1]), value=value)
