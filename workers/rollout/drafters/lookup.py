"""Proposals that are looked up, not computed, as a draft."""

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from workers.rollout.drafters.drafter import Draft


def to_draft(proposals: Sequence[list[int]], device: torch.device) -> Draft | None:
    """Proposals of any lengths, one a row, padded with token 0 to the longest; None where all are empty."""
    lengths = [len(proposal) for proposal in proposals]
    width = max(lengths, default=0)
    if width == 0:
        return None
    flat = array("q")
    for proposal, length in zip(proposals, lengths, strict=True):
        flat.extend(proposal)
        flat.extend([0] * (width - length))
    num_drafted_R = None if min(lengths) == width else _tensor(array("q", lengths), device)
    return Draft(_tensor(flat, device).view(len(proposals), width), None, num_drafted_R)


def _tensor(numbers: "array[int]", device: torch.device) -> Tensor:
    """On the numbers' own memory where the device allows, which takes a tenth of reading lists."""
    return torch.frombuffer(numbers, dtype=torch.int64).to(device)
