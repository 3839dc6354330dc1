"""The Kolmogorov-Smirnov test of uniformity: what one step's tokens say.

Shape suffixes: N tokens, K bins.
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
    return KsResult(distance, ks_p_value(distance, n), n)


def binned_distance(counts_K: Tensor) -> Tensor:
    """The same distance of binned values [..., K], seen at the bins' edges only: max_k |F_n(k / K) - k / K|.

    float64 [...]; at most the exact distance, and less than it by at most 1 / K; 0 where no value was counted.
    """
    num_bins = counts_K.shape[-1]
    total = counts_K.sum(-1, keepdim=True).clamp_min(1)
    edges_K = torch.arange(1, num_bins + 1, dtype=torch.float64) / num_bins
    is_empty = counts_K.sum(-1) == 0
    return (counts_K.double().cumsum(-1) / total - edges_K).abs().amax(-1).masked_fill(is_empty, 0.0)


def ks_p_value(distance: float, num_tokens: float) -> float:
    """Chance of this distance or a larger one among so many exact samples; see ks_uniform."""
    root = math.sqrt(num_tokens)
    return kolmogorov_survival((root + 0.12 + 0.11 / root) * distance)


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
