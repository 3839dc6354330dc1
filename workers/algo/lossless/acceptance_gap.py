"""Acceptances against their chances: the martingale that a fair acceptance rule cannot leave.

Shape suffixes: M tested drafts.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class AcceptanceGap(NamedTuple):
    """Of tested drafts."""

    num_tested: int
    gap_sum: float
    """sum (a - m), with a 1 where the draft was accepted and m its chance of it."""
    variance: float
    """sum m (1 - m): the variance of gap_sum under the exact rule, each chance given what came before."""

    @property
    def gap(self) -> float:
        """Acceptances per tested draft too many, or too few where negative; 0 without a draft."""
        return self.gap_sum / self.num_tested if self.num_tested else 0.0

    @property
    def z(self) -> float | None:
        """gap_sum in standard deviations: N(0, 1) under the exact rule for many drafts; None where nothing was open."""
        return self.gap_sum / self.variance**0.5 if self.variance > 0 else None


def acceptance_probs(policy_probs_M: Tensor, draft_probs_M: Tensor) -> Tensor:
    """m = min(1, p(x) / q(x)), float64, of proposed tokens x (arXiv:2211.17192, algorithm 1); 0 where p is."""
    p_M = policy_probs_M.double()
    return torch.where(p_M == 0, 0.0, p_M / draft_probs_M.double()).clamp_max(1.0)


def acceptance_gap(is_accepted_M: Tensor, acceptance_probs_M: Tensor) -> AcceptanceGap:
    """Sums over tested drafts, in the order of generation or any other."""
    m = acceptance_probs_M.double()
    gap = torch.sum(is_accepted_M.double() - m).item()
    return AcceptanceGap(len(m), gap, torch.sum(m * (1 - m)).item())
