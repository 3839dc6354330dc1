"""One batch of prompts over several engines: pieces of work, whoever is free takes the next, results in order."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace

import torch
from torch import Tensor

from workers.rollout.engine import Completion, DraftEvidence, EngineLoad, RolloutResult, SpeculationCounters


def share_out(num_prompts: int, num_parts: int) -> list[range]:
    """Consecutive prompts for each part, in nearly equal numbers; empty ranges where there are fewer prompts."""
    cuts = [num_prompts * i // num_parts for i in range(num_parts + 1)]
    return [range(cuts[i], cuts[i + 1]) for i in range(num_parts)]


def pieces(num_prompts: int, num_engines: int, num_full: int) -> list[range]:
    """Pieces of work in the order in which they are handed out, first large and then smaller.

    A response's length is not known beforehand, so that equal shares end at different times. Each piece is half of an
    even share of what is left (guided self-scheduling), and never less than num_full, the prompts that fill one
    engine's batch: an engine that empties its batch between pieces loses more than it gains. Prompts that fill the
    engines no more than once are shared out evenly. Depends on these numbers only, so that seeds by piece can be
    repeated.
    """
    if num_engines == 1 or num_prompts <= num_engines * num_full:
        return [share for share in share_out(num_prompts, num_engines) if share]
    made, begin = [], 0
    while begin < num_prompts:
        left = num_prompts - begin
        size = max(num_full, math.ceil(left / (2 * num_engines)))
        size = left if left - size < num_full else size  # no piece that would leave an engine's batch half empty
        made.append(range(begin, begin + size))
        begin += size
    return made


def local_rows(rows: Sequence[int], piece: range, num_samples: int) -> list[int]:
    """Rows of the whole result as rows of one piece's."""
    first = piece.start * num_samples
    return [row - first for row in rows if first <= row < piece.stop * num_samples]


def merge_results(shares: Sequence[range], results: Sequence[RolloutResult], generation_s: float) -> RolloutResult:
    """Completions in the order of all prompts, with the evidence about them, and counters added.

    shares: each result's prompts, consecutive and in order. generation_s: of the engine that was busy for longest.
    """
    completions: list[Completion] = []
    evidence: list[DraftEvidence] = []
    for share, result in zip(shares, results, strict=True):
        if result.evidence is not None:
            moved = result.evidence.completion_M + len(completions)
            evidence.append(replace(result.evidence, completion_M=moved))
        for completion in result.completions:
            completion.prompt_index += share.start
            completions.append(completion)
    counters = sum((result.counters for result in results), SpeculationCounters())
    return RolloutResult(
        completions,
        counters,
        generation_s,
        [cost for result in results for cost in result.round_costs],
        _joined(evidence),
        sum((result.load for result in results), EngineLoad()),
    )


def _joined(parts: Sequence[DraftEvidence]) -> DraftEvidence | None:
    """One after another, None where there is none; what one keeps fewer of is filled up as DraftEvidence says."""
    if not parts:
        return None
    width = max(part.top_ids_MN.shape[1] for part in parts)
    even = [
        replace(part, top_ids_MN=_widen(part.top_ids_MN, width, -1), top_probs_MN=_widen(part.top_probs_MN, width, 0))
        for part in parts
    ]
    return DraftEvidence(*(torch.cat([getattr(part, field.name) for part in even]) for field in fields(DraftEvidence)))


def _widen(tensor_MN: Tensor, width: int, value: int) -> Tensor:
    return torch.nn.functional.pad(tensor_MN, (0, width - tensor_MN.shape[1]), value=value)
