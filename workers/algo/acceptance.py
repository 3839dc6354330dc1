"""Exact rejection sampling of drafted tokens: what makes speculation lossless.

Shape suffixes: B sequences, K drafted tokens, J = K + 1 policy rows, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor

Randomness = torch.Generator | Tensor | None
"""What to draw from: a generator, torch's own for None, or numbers drawn beforehand: U[0, 1) in float64, as many a row
as are needed."""


class Verdict(NamedTuple):
    """What one verification round decided."""

    num_accepted_B: Tensor
    """int64 in [0, K]: drafted tokens accepted, from the front."""
    next_token_B: Tensor
    """int64: the token after them, a correction where one was rejected, else the bonus."""


_SMALL = 384
"""Probabilities up to which a race takes less time than an inversion; its exponentials cost 20 ns each."""


def draw(probs: Tensor, randomness: Randomness) -> Tensor:
    """One index per row of the last dimension, with chances proportional to its non-negative weights.

    A few weights race: argmax_x p(x) / e(x) with e ~ Exp(1) independent is the first arrival among Poisson processes of
    rates p(x). Many are inverted, and all where numbers were drawn beforehand, one a row: the first x with
    F(x) > u F(last), F the cumulative sum in float64 and u ~ U[0, 1).
    """
    is_drawn = isinstance(randomness, Tensor)
    if probs.numel() <= _SMALL and not is_drawn:
        return (probs / torch.empty_like(probs).exponential_(generator=randomness)).argmax(-1)
    cumulative = probs.cumsum(-1, dtype=torch.float64)
    last = cumulative[..., -1:]
    u = randomness.unsqueeze(-1) if is_drawn else torch.empty_like(last).uniform_(generator=randomness)
    return torch.searchsorted(cumulative, u * last, right=True).squeeze(-1)


def verify(
    drafted_BK: Tensor,
    draft_probs_BKV: Tensor | None,
    policy_probs_BJV: Tensor,
    randomness: Randomness,
    num_drafted_B: Tensor | None = None,
) -> Verdict:
    """Accept a prefix of each draft and draw the token after it, so that what is emitted is distributed as the policy.

    Draft token x at position i is accepted with probability min(1, p_i(x) / q_i(x)) if all before it were; at the first
    rejection the correction is drawn from (p_i - q_i)+ / sum (p_i - q_i)+, after the last of n acceptances the bonus
    from p_n (Leviathan et al. 2023, arXiv:2211.17192, algorithm 1; Chen et al. 2023, arXiv:2302.01318, algorithm 2).

    drafted_BK: int64, drawn from draft_probs_BKV [q], which is None where the drafts were not drawn but determined: q
    is then one-hot. num_drafted_B: int64 in [0, K], tokens that each row drafted; any token and any finite q may stand
    behind them, and neither has an effect. None: K in every row. policy_probs_BJV [p]: row i given the prefix and the
    first i drafted tokens; one-hot for greedy decoding, where exactly the argmax is emitted. All probabilities float32
    and already at the sampling temperature; no gradient. randomness: [B, J] where it was drawn beforehand.
    """
    num_rows, num_columns = drafted_BK.shape
    drafted_BK1 = drafted_BK.unsqueeze(2)
    p_drafted_BK = policy_probs_BJV[:, :num_columns].gather(2, drafted_BK1).squeeze(2)
    if isinstance(randomness, Tensor):
        threshold_BK, last = randomness[:, :num_columns], randomness[:, num_columns]
    else:
        threshold_BK = torch.rand(p_drafted_BK.shape, generator=randomness, device=drafted_BK.device)
        last = randomness
    if draft_probs_BKV is not None:
        threshold_BK = threshold_BK * draft_probs_BKV.gather(2, drafted_BK1).squeeze(2)
    is_accepted_BK = threshold_BK < p_drafted_BK  # u < p / q, without the division
    if num_drafted_B is not None:
        is_accepted_BK &= torch.arange(num_columns, device=drafted_BK.device) < num_drafted_B.unsqueeze(1)
    num_accepted_B = is_accepted_BK.long().cumprod(1).sum(1)
    rows = torch.arange(num_rows, device=drafted_BK.device)
    weights_BV = policy_probs_BJV[rows, num_accepted_B]
    if num_columns > 0:
        is_rejected_B = num_accepted_B < (num_columns if num_drafted_B is None else num_drafted_B)
        at_B = num_accepted_B.clamp_max(num_columns - 1)
        q_BV = None if draft_probs_BKV is None else draft_probs_BKV[rows, at_B]
        weights_BV = _residual(weights_BV, drafted_BK[rows, at_B], q_BV, is_rejected_B)
    return Verdict(num_accepted_B, draw(weights_BV, last))


_FLOOR = 1e-12
"""Share of p that a residual keeps everywhere, so that something is left where rounding empties it. A rejection has the
probability sum (p - q)+, so this moves what is emitted by 1e-12 in total variation at most, float32's p by more."""


def _residual(p_BV: Tensor, drafted_B: Tensor, q_BV: Tensor | None, is_rejected_B: Tensor) -> Tensor:
    """(p - q)+, not normalised, in rejected rows, and p in the others. May write to p_BV."""
    is_rejected_B1 = is_rejected_B.unsqueeze(1)
    if q_BV is not None:
        return torch.maximum(torch.addcmul(p_BV, q_BV, is_rejected_B1.to(p_BV.dtype), value=-1), p_BV * _FLOOR)
    drafted_B1 = drafted_B.unsqueeze(1)
    p_drafted_B1 = p_BV.gather(1, drafted_B1)
    return p_BV.scatter_(1, drafted_B1, torch.where(is_rejected_B1, p_drafted_B1 * _FLOOR, p_drafted_B1))
