"""The lossless audit: whether emitted tokens are distributed as the policy says, whatever engine emitted them.

Shape suffixes: N tokens, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KsResult:
    """Kolmogorov-Smirnov test of uniformity on [0, 1]."""

    distance: float
    p_value: float
    num_tokens: int


def randomized_pit(logprobs_NV: Tensor, token_ids_N: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """u = F_p(x-) + v p(x), v ~ U(0, 1): uniform on [0, 1] if and only if x ~ p (Ruschendorf 2009, "On the
    distributional transform", proposition 2.1).

    The vocabulary is ordered by descending probability, ties by token id, so that F_p(x-) is the mass of tokens more
    probable than x; the order depends on the context alone. logprobs_NV: log p of every token, float32, from the
    trainer's own pass at the sampling temperature. token_ids_N: int64, the emitted tokens. Returns float64 [N].
    """
    p_NV = logprobs_NV.exp()
    chosen_N1 = token_ids_N.unsqueeze(1)
    p_chosen_N1 = p_NV.gather(1, chosen_N1)
    ids_V = torch.arange(p_NV.shape[1], device=p_NV.device)
    is_before_NV = (p_NV > p_chosen_N1) | ((p_NV == p_chosen_N1) & (ids_V < chosen_N1))
    below_N = (p_NV * is_before_NV).sum(1, dtype=torch.float64)
    v_N = torch.rand(len(below_N), generator=generator, dtype=torch.float64, device=p_NV.device)
    return (below_N + v_N * p_chosen_N1.squeeze(1)).clamp_(0.0, 1.0)


def ks_uniform(u_N: Tensor) -> KsResult:
    """D = max_i max(i / n - u_(i), u_(i) - (i - 1) / n) over the sorted u, and its asymptotic p-value.

    p = Q((sqrt n + 0.12 + 0.11 / sqrt n) D) with Kolmogorov's survival function Q and Stephens's correction for finite
    n (Stephens 1970, "Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics"). 15,000 exact samples
    stay within about 0.011. Raises ValueError where there is no token.
    """
    n = u_N.numel()
    if n == 0:
        raise ValueError("u_N is empty: the audit needs at least one token")
    sorted_N = u_N.double().sort().values
    rank_N = torch.arange(1, n + 1, dtype=torch.float64, device=u_N.device)
    distance = torch.maximum(rank_N / n - sorted_N, sorted_N - (rank_N - 1) / n).max().item()
    root = math.sqrt(n)
    return KsResult(distance, kolmogorov_survival((root + 0.12 + 0.11 / root) * distance), n)


def kolmogorov_survival(x: float) -> float:
    """Q(x) = 2 sum_{j >= 1} (-1)^(j - 1) exp(-2 j^2 x^2) (Kolmogorov 1933).

    Where that series converges slowly its theta-function form is used:
    Q(x) = 1 - sqrt(2 pi) / x sum_{j >= 1} exp(-(2 j - 1)^2 pi^2 / (8 x^2)). NaN where x is.
    """
    if math.isnan(x):
        return x
    if x < 0.04:
        return 1.0  # 1 - Q is below 1e-300 there.
    if x < 1.18:
        terms = sum(math.exp(-((2 * j - 1) ** 2) * math.pi**2 / (8 * x * x)) for j in range(1, 6))
        return 1.0 - math.sqrt(2 * math.pi) / x * terms
    return max(0.0, 2 * sum((-1) ** (j - 1) * math.exp(-2 * j * j * x * x) for j in range(1, 6)))
