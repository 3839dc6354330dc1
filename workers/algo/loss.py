"""The clipped GRPO loss over tokens.

Shapes: B responses, T tokens. All log-probabilities are in nats, at the sampling temperature, of the token at t given
the tokens before t.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class GrpoLoss:
    """One micro-batch's share; shares of a step add up."""

    loss: torch.Tensor
    """Scalar with gradient, already divided by the step's normaliser."""
    num_clipped: torch.Tensor
    """Scalar: response tokens whose ratio lies outside the clip range."""
    kl_reference_sum: torch.Tensor
    """Scalar: sum of the k3 estimates against the reference, in nats; 0 without a reference."""


def grpo_loss(
    logprobs_BT: torch.Tensor,
    old_logprobs_BT: torch.Tensor,
    advantages_B: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    normalizer: float,
    clip_low: float,
    clip_high: float,
    reference_logprobs_BT: torch.Tensor | None = None,
    kl_penalty: float = 0.0,
) -> GrpoLoss:
    """Token-level clipped surrogate with an optional penalty on the distance from a reference policy.

    L = (1/N) sum_bt m_bt [ -min(rho_bt A_b, clip(rho_bt, 1 - low, 1 + high) A_b) + beta k3(pi, ref)_bt ]
    rho_bt = exp(logprob_bt - old_logprob_bt)

    Source: GRPO, arXiv:2402.03300, eq. 3, with the token-level mean and asymmetric clip of DAPO, arXiv:2503.14476,
    eqs. 8-12.

    logprobs_BT: the policy being trained; gradient flows.
    old_logprobs_BT: the policy before the step's first update, recomputed by the trainer; no gradient.
    advantages_B: one a response. mask_BT: 1 at response tokens.
    normalizer: N, the response tokens of the whole update, not of this micro-batch, so that the sum over
        micro-batches does not depend on how the update was cut.
    reference_logprobs_BT, kl_penalty: the starting policy and beta.
    """
    ratio = torch.exp((logprobs_BT - old_logprobs_BT.detach()) * mask_BT)
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    advantages = advantages_B.detach()[:, None]
    per_token = -torch.minimum(ratio * advantages, clipped * advantages)
    kl = torch.zeros_like(per_token)
    if reference_logprobs_BT is not None:
        kl = k3(logprobs_BT, reference_logprobs_BT.detach(), mask_BT)
        per_token = per_token + kl_penalty * kl
    return GrpoLoss(
        loss=(per_token * mask_BT).sum() / normalizer,
        num_clipped=((ratio != clipped) * mask_BT).sum().detach(),
        kl_reference_sum=(kl * mask_BT).sum().detach(),
    )


def k3(logprobs_BT: torch.Tensor, other_logprobs_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
    """Per-token estimate of KL(p || o) from tokens drawn from p: exp(o - p) - (o - p) - 1, never negative.

    Source: J. Schulman, "Approximating KL divergence" (2020), estimator k3; GRPO, arXiv:2402.03300, eq. 4.
    Unbiased for tokens drawn from p. Masked positions give 0. Gradient flows into both arguments unless detached.
    """
    difference = (other_logprobs_BT - logprobs_BT) * mask_BT
    return torch.exp(difference) - difference - 1
