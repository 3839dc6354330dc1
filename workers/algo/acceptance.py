"""Exact rejection sampling of drafted tokens: what makes speculation lossless.

Shape suffixes: B sequences, K drafted tokens, J = K + 1 policy rows, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Verdict(NamedTuple):
    """What one verification round decided."""

    num_accepted_B: Tensor
    """int64 in [0, K]: drafted tokens accepted, from the front."""
    next_token_B: Tensor
    """int64: the token after them, a correction where one was rejected, else the bonus."""


def draw(probs: Tensor, generator: torch.Generator | None) -> Tensor:
    """One index per row of the last dimension, with chances proportional to its non-negative weights.

    argmax_x p(x) / e(x) with e ~ Exp(1) independent: the first arrival among Poisson processes of rates p(x).
    """
    return (probs / torch.empty_like(probs).exponential_(generator=generator)).argmax(-1)


def verify(
    drafted_BK: Tensor, draft_probs_BKV: Tensor | None, policy_probs_BJV: Tensor, generator: torch.Generator | None
) -> Verdict:
    """Accept a prefix of each draft and draw the token after it, so that what is emitted is distributed as the policy.

    Draft token x at position i is accepted with probability min(1, p_i(x) / q_i(x)) if all before it were; at the first
    rejection the correction is drawn from (p_i - q_i)+ / sum (p_i - q_i)+, after K acceptances the bonus from p_K
    (Leviathan et al. 2023, arXiv:2211.17192, algorithm 1; Chen et al. 2023, arXiv:2302.01318, algorithm 2).

    drafted_BK: int64, drawn from draft_probs_BKV [q], which is None where the drafts were not drawn but determined: q
    is then one-hot. policy_probs_BJV [p]: row i given the prefix and the first i drafted tokens; one-hot for greedy
    decoding, where exactly the argmax is emitted. All probabilities float32 and already at the sampling temperature; no
    gradient.
    """
    num_rows, num_drafted = drafted_BK.shape
    rows = torch.arange(num_rows, device=drafted_BK.device)
    p_drafted_BK = policy_probs_BJV[:, :num_drafted].gather(2, drafted_BK.unsqueeze(2)).squeeze(2)
    threshold_BK = torch.rand(p_drafted_BK.shape, generator=generator, device=drafted_BK.device)
    if draft_probs_BKV is not None:
        threshold_BK *= draft_probs_BKV.gather(2, drafted_BK.unsqueeze(2)).squeeze(2)
    # u < p / q, without the division.
    num_accepted_B = (threshold_BK < p_drafted_BK).long().cumprod(1).sum(1)
    p_BV = policy_probs_BJV[rows, num_accepted_B]
    if num_drafted == 0:
        return Verdict(num_accepted_B, draw(p_BV, generator))
    at_B = num_accepted_B.clamp_max(num_drafted - 1)
    residual_BV = _residual(
        p_BV, drafted_BK[rows, at_B], None if draft_probs_BKV is None else draft_probs_BKV[rows, at_B]
    )
    is_full_B1 = (num_accepted_B == num_drafted).unsqueeze(1)
    return Verdict(num_accepted_B, draw(torch.where(is_full_B1, p_BV, residual_BV), generator))


def _residual(p_BV: Tensor, drafted_B: Tensor, q_BV: Tensor | None) -> Tensor:
    """(p - q)+, not normalised, or p where rounding left nothing of it."""
    residual_BV = p_BV.scatter(1, drafted_B.unsqueeze(1), 0.0) if q_BV is None else (p_BV - q_BV).clamp_min_(0)
    return torch.where(residual_BV.sum(1, keepdim=True) > 0, residual_BV, p_BV)
