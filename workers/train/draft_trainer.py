"""Training of the EAGLE-3 draft head on given batches, apart from the policy: own optimisers, own gradient norm.

Shape suffixes: B sequences, T positions, V vocabulary, F features, N start positions of a draft.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from contract.config.trainer import MuonOptimizer
from workers.model.eagle3 import Eagle3Head
from workers.train.finite import FiniteGradients
from workers.train.optimizer import build_optimizers

STEP_WEIGHT_DECAY = 0.8
"""Each further step of the unroll weighs this much of the one before: later drafts count only if earlier ones hold."""


@dataclass(frozen=True, slots=True)
class DraftUpdate:
    """What one update saw, before it changed the head."""

    loss_nats: float
    grad_norm: float
    """Before clipping."""
    expected_acceptance_length: float
    """1 + the mean over start positions of a_1 + a_1 a_2 + ..., in [1, unroll_length + 1], with a_s the chance
    sum_x min(p(x), q(x)) that draft position s is accepted once the ones before it were. Drafts start as in generation:
    after the first response token."""


@dataclass(frozen=True, slots=True)
class DraftLoss:
    """The loss with its gradient, and what it measured on the way."""

    loss: Tensor
    expected_acceptance_length: float


def draft_loss(
    step_logits: Sequence[Tensor], policy_logits_BTV: Tensor, response_mask_BT: Tensor, temperature: float
) -> DraftLoss:
    """Soft cross-entropy of the unrolled head against the policy (EAGLE-3, arXiv:2503.01840, section 3.2).

    loss = sum_s w_s * mean_{(b, i): token i + s + 2 is a response token} ( - sum_x p(x) log q_s(x) ) / sum_s w_s,
    w_s = STEP_WEIGHT_DECAY^s, with p the policy's distribution for token i + s + 2, row i + s + 1 of its logits,
    without gradient, and q_s row i of step_logits[s] (see Eagle3Head.forward), with gradient. The mean's normaliser is
    the number of response tokens that the step scores. temperature: of p and q alike, that of the rollouts, since that
    is where they meet.
    """
    p_BTV = (policy_logits_BTV.detach().float() / temperature).softmax(-1)
    terms, chain_total = [], 0.0
    chain_BN: Tensor | None = None
    for step, logits in enumerate(step_logits):
        num_starts = logits.shape[1]
        p = p_BTV[:, step + 1 : step + 1 + num_starts]
        mask = response_mask_BT[:, step + 2 : step + 2 + num_starts]
        num_tokens = mask.sum().clamp_min(1)
        log_q = (logits.float() / temperature).log_softmax(-1)
        terms.append((-(p * log_q).sum(-1) * mask).sum() / num_tokens)
        with torch.no_grad():
            overlap = torch.minimum(p, log_q.exp()).sum(-1)
            chain_BN = overlap if chain_BN is None else chain_BN[:, :num_starts] * overlap
            is_drafted_BN = mask * response_mask_BT[:, 1 : 1 + num_starts]
            chain_total += ((chain_BN * is_drafted_BN).sum() / is_drafted_BN.sum().clamp_min(1)).item()
    weights = [STEP_WEIGHT_DECAY**step for step in range(len(terms))]
    loss = torch.stack([weight * term for weight, term in zip(weights, terms, strict=True)]).sum() / sum(weights)
    return DraftLoss(loss, 1 + chain_total)


class DraftTrainer:
    """Owns the head's optimisers and takes updates; nothing of it touches the policy."""

    def __init__(
        self,
        head: Eagle3Head,
        learning_rate_matrices: float,
        learning_rate_others: float,
        max_grad_norm: float,
        autocast_dtype: torch.dtype | None = None,
    ) -> None:
        """autocast_dtype: of the forward pass, parameters staying in float32; None for float32 throughout."""
        self.head = head
        self.max_grad_norm = max_grad_norm
        self.autocast_dtype = autocast_dtype
        self.optimizers = build_optimizers(
            head.named_parameters(),
            MuonOptimizer(learning_rate_matrices=learning_rate_matrices, learning_rate_others=learning_rate_others),
        )
        self._finite = FiniteGradients("the draft head", "lower the drafter's learning rates")
        self._learning_rates = [optimizer.param_groups[0]["lr"] for optimizer in self.optimizers]

    def update(
        self,
        features_BTF: Tensor,
        token_ids_BT: Tensor,
        response_mask_BT: Tensor,
        policy_logits_BTV: Tensor,
        unroll_length: int,
        *,
        temperature: float,
        learning_rate_scale: float = 1.0,
    ) -> DraftUpdate:
        """One optimiser step on the policy's detached features and logits of right-padded sequences.

        temperature: of the rollouts. A gradient that is not finite is not applied; see FiniteGradients.
        learning_rate_scale multiplies both learning rates, for schedules.
        """
        device = token_ids_BT.device.type
        with torch.autocast(device, self.autocast_dtype, enabled=self.autocast_dtype is not None):
            step_logits = self.head(features_BTF.detach(), token_ids_BT, unroll_length)
        result = draft_loss(step_logits, policy_logits_BTV, response_mask_BT, temperature)
        result.loss.backward()
        grad_norm = clip_grad_norm_(self.head.parameters(), self.max_grad_norm).item()
        is_applied = self._finite.allow(grad_norm)
        for optimizer, learning_rate in zip(self.optimizers, self._learning_rates, strict=True):
            optimizer.param_groups[0]["lr"] = learning_rate * learning_rate_scale
            if is_applied:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return DraftUpdate(result.loss.item(), grad_norm, result.expected_acceptance_length)

    def state_dict(self) -> dict[str, Any]:
        """Head and optimiser state."""
        return {"head": self.head.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up state_dict(); this trainer's learning rates stay."""
        self.head.load_state_dict(state["head"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
