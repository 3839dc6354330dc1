"""Proposals that are looked up, not computed, as a draft."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from workers.rollout.drafters.drafter import Draft


class Rule(NamedTuple):
    """How far what is found is followed."""

    max_tokens: int
    min_match: int
    max_match: int
    """Tokens of a match, at least and at most."""
    min_probability: float
    """Estimated chance of being accepted whole below which a proposal ends."""


class Proposals(NamedTuple):
    """Of several rows, in 64 bits each."""

    token_ids: "array[int]"
    """[rows, stride], each row padded with token 0."""
    stride: int
    lengths: "array[int]"

    @classmethod
    def of(cls, proposals: Sequence[list[int]]) -> "Proposals":
        """Of any lengths, one a row."""
        lengths = array("q", map(len, proposals))
        stride = max(lengths, default=0)
        token_ids = array("q")
        for proposal in proposals:
            token_ids.extend(proposal)
            token_ids.extend([0] * (stride - len(proposal)))
        return cls(token_ids, stride, lengths)

    def to_draft(self, device: torch.device) -> Draft | None:
        """As wide as the longest; None where all are empty."""
        width = max(self.lengths, default=0)
        if width == 0:
            return None
        num_drafted_R = None if min(self.lengths) == width else _tensor(self.lengths, device)
        return Draft(_tensor(self.token_ids, device).view(-1, self.stride)[:, :width], None, num_drafted_R)


def _tensor(numbers: "array[int]", device: torch.device) -> Tensor:
    """On the numbers' own memory where the device allows, which takes a tenth of reading lists."""
    return torch.frombuffer(numbers, dtype=torch.int64).to(device)
