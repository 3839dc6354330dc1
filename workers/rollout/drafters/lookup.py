"""Proposals that are looked up, not computed, as a draft."""

from collections.abc import Sequence

import torch

from workers.rollout.drafters.drafter import Draft


def to_draft(proposals: Sequence[list[int]], device: torch.device) -> Draft | None:
    """Proposals of any lengths, one a row, padded with token 0 to the longest; None where all are empty."""
    lengths = [len(proposal) for proposal in proposals]
    width = max(lengths, default=0)
    if width == 0:
        return None
    padded = [proposal + [0] * (width - length) for proposal, length in zip(proposals, lengths, strict=True)]
    num_drafted_R = None if min(lengths) == width else torch.tensor(lengths, device=device)
    return Draft(torch.tensor(padded, device=device), None, num_drafted_R)
