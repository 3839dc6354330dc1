"""Likelihood ratios against exact sampling: what a bettor's capital would be multiplied by.

Each is 1 in expectation under exact sampling, for any number of tokens that is decided as they come, so their products
and mixtures are test martingales (Ville 1939; Shafer 2021, "Testing by betting", DOI 10.1111/rssa.12647).

Shape suffixes: K bins, M tested drafts, G tilts.
"""

import math

import torch
from torch import Tensor

NUM_BINS = 32
_COARSENESS = (1, 8)
"""Bins are also taken together, for a fault that shifts everything one way needs few bins, and few cost less."""
_CONCENTRATIONS = (3.0, 30.0, 300.0, 3000.0)
"""Of the Dirichlet priors, each a guess of the faulty bins' relative spread, 1 / sqrt(concentration)."""
TILTS_G = torch.tensor([sign * size for size in (0.02, 0.06, 0.2, 0.6, 1.8) for sign in (1, -1)], dtype=torch.float64)
"""Changes of the log odds of acceptance that are bet on."""


def log_bin_evidence(counts_K: Tensor) -> Tensor:
    """ln of the mean, over priors, of the Dirichlet-multinomial likelihood of binned values over the uniform one.

    ln B = ln Gamma(K a) - ln Gamma(K a + n) + sum_k [ln Gamma(a + n_k) - ln Gamma(a)] + n ln K, for concentration a in
    _CONCENTRATIONS and K bins or an eighth of them. counts_K: float64 [..., K] over any number of steps. Returns [...].
    """
    parts = []
    for width in _COARSENESS:
        grouped = counts_K.unflatten(-1, (-1, width)).sum(-1)
        parts += [_dirichlet_multinomial(grouped, concentration) for concentration in _CONCENTRATIONS]
    return torch.stack(parts).logsumexp(0) - math.log(len(parts))


def _dirichlet_multinomial(counts_K: Tensor, concentration: float) -> Tensor:
    num_bins, n = counts_K.shape[-1], counts_K.sum(-1)
    a = torch.tensor(concentration, dtype=torch.float64)
    total = num_bins * a
    gained = (torch.lgamma(a + counts_K) - torch.lgamma(a)).sum(-1)
    return torch.lgamma(total) - torch.lgamma(total + n) + gained + n * math.log(num_bins)


def log_tilts(is_accepted_M: Tensor, acceptance_probs_M: Tensor) -> Tensor:
    """[G] ln of prod_i exp(t a_i) / (1 - m_i + m_i exp(t)): acceptance a_i with log odds changed by t over that of m_i.

    is_accepted_M: a, bool. acceptance_probs_M: m = min(1, p / q), float64. Adds up over steps.
    """
    growth_G1 = torch.expm1(TILTS_G).unsqueeze(1)
    normalizer_G = torch.log1p(acceptance_probs_M.double() * growth_G1).sum(1)
    return TILTS_G * is_accepted_M.sum() - normalizer_G


def log_tilt_evidence(log_tilts_G: Tensor) -> Tensor:
    """ln of the mean over tilts [..., G] -> [...]."""
    return log_tilts_G.logsumexp(-1) - math.log(log_tilts_G.shape[-1])
