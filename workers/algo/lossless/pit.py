"""The randomised probability integral transform of emitted tokens.

Shape suffixes: N tokens, V vocabulary, C tokens kept of the draft's distribution.
"""

import torch
from torch import Tensor


def randomized_pit(
    probs_NV: Tensor, token_ids_N: Tensor, scores_NV: Tensor | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """u = F_p(x-) + v p(x), v ~ U(0, 1): uniform on [0, 1] if and only if x ~ p (Ruschendorf 2009, "On the
    distributional transform", proposition 2.1).

    F_p(x-) is the mass of the tokens before x in descending order of their scores, ties by token id. Scores may be
    anything that depends on the context alone, never on the drafted or emitted token; without them it is the
    probability itself. probs_NV: p of every token, float32, as processed for sampling. token_ids_N: int64, the emitted
    tokens; one of probability 0 gets u = the mass before it. Returns float64 [N]; no gradient is meant.
    """
    scores_NV = probs_NV if scores_NV is None else scores_NV
    chosen_N1 = token_ids_N.unsqueeze(1)
    score_N1 = scores_NV.gather(1, chosen_N1)
    ids_V = torch.arange(probs_NV.shape[1], device=probs_NV.device)
    is_before_NV = (scores_NV > score_N1) | ((scores_NV == score_N1) & (ids_V < chosen_N1))
    below_N = (probs_NV * is_before_NV).sum(1, dtype=torch.float64)
    v_N = torch.rand(len(below_N), generator=generator, dtype=torch.float64).to(probs_NV.device)
    return (below_N + v_N * probs_NV.gather(1, chosen_N1).squeeze(1)).clamp_(0.0, 1.0)


def draft_ratio_scores(probs_NV: Tensor, top_ids_NC: Tensor, top_probs_NC: Tensor) -> Tensor:
    """q(x) / p(x) for the kept tokens, 0 for all others: an order in which every fault of the accept and correct rules
    is a shift to the front, for it can only favour what the draft over-proposes.

    probs_NV: p. top_ids_NC, top_probs_NC: kept tokens and their q; id -1 where there is none. Returns float32 [N, V],
    infinite where q > 0 = p.
    """
    ids_NC = top_ids_NC.clamp_min(0)
    is_kept_NC = (top_ids_NC >= 0) & (top_probs_NC > 0)
    ratio_NC = torch.where(is_kept_NC, top_probs_NC / probs_NV.gather(1, ids_NC), 0.0)
    return torch.zeros_like(probs_NV).scatter_reduce_(1, ids_NC, ratio_NC, "amax")


def bin_counts(u_N: Tensor, num_bins: int) -> Tensor:
    """float64 [num_bins]: how many u lie in each of as many equal parts of [0, 1]; NaN is in none."""
    finite_N = u_N[~u_N.isnan()]
    bins_N = (finite_N * num_bins).long().clamp_max(num_bins - 1)
    return torch.bincount(bins_N, minlength=num_bins).double().cpu()
