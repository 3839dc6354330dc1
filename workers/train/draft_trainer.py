"""Training of a draft on given batches, apart from the policy: own optimisers, own gradient norm.

Shape suffixes: B sequences, T positions, V vocabulary, N start positions of a draft.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from contract.config.trainer import MuonOptimizer
from workers.model.draft import DraftModule, PolicyPass
from workers.train.finite import FiniteGradients
from workers.train.optimizer import build_optimizers

STEP_WEIGHT_DECAY = 0.8
"""Each further step of the unroll weighs this much of the one before: later drafts count only if earlier ones hold."""


@dataclass(frozen=True, slots=True)
class DraftUpdate:
    """What one update saw, before it changed the draft."""

    loss_nats: float
    grad_norm: float
    """Before clipping."""
    expected_acceptance_length: float
    """See DraftLoss."""
    expected_first_acceptance: float
    """Its chance at the first draft position."""


@dataclass(frozen=True, slots=True)
class DraftLoss:
    """The loss with its gradient, and what it measured on the way."""

    loss: Tensor
    expected_acceptance: tuple[float, ...]
    """Mean over start positions of a_1, a_1 a_2, ..., with a_s the chance sum_x min(p(x), q(x)) that draft position s
    is accepted once the ones before it were. Drafts start as in generation: after the first response token."""
    num_starts: tuple[int, ...]
    """Start positions behind each of these means."""

    @property
    def expected_acceptance_length(self) -> float:
        """1 + their sum, in [1, unroll_length + 1]."""
        return 1 + sum(self.expected_acceptance)


def draft_loss(
    step_logits: Sequence[Tensor],
    policy_logits_BTV: Tensor,
    response_mask_BT: Tensor,
    temperature: float,
    vocabulary_V: Tensor | None = None,
) -> DraftLoss:
    """Soft cross-entropy of the unrolled draft against the policy (EAGLE-3, arXiv:2503.01840, section 3.2).

    loss = sum_s w_s * mean_{(b, i): token i + s + 2 is a response token} ( - sum_x p(x) log q_s(x) ) / sum_s w_s,
    w_s = STEP_WEIGHT_DECAY^s, with p the policy's distribution for token i + s + 2, row i + s + 1 of its logits,
    without gradient, and q_s row i of step_logits[s] (see DraftModule.forward), with gradient. The mean's normaliser is
    the number of response tokens that the step scores. temperature: of p and q alike, that of the rollouts, since that
    is where they meet.

    vocabulary_V: the tokens that the draft's columns stand for, where they are not all. In the loss p is then the
    policy's distribution given that the token is one of these; acceptance knows all of p, of which a draft can never
    meet what lies outside.
    """
    logits_BTV = policy_logits_BTV.detach().float() / temperature
    target_BTV = p_BTV = logits_BTV.softmax(-1)
    if vocabulary_V is not None:
        target_BTV, p_BTV = logits_BTV[..., vocabulary_V].softmax(-1), p_BTV[..., vocabulary_V]
    terms, chains, counts = [], [], []
    chain_BN: Tensor | None = None
    for step, logits in enumerate(step_logits):
        num_starts = logits.shape[1]
        scored = slice(step + 1, step + 1 + num_starts)
        mask = response_mask_BT[:, step + 2 : step + 2 + num_starts]
        log_q = (logits.float() / temperature).log_softmax(-1)
        terms.append((-(target_BTV[:, scored] * log_q).sum(-1) * mask).sum() / mask.sum().clamp_min(1))
        with torch.no_grad():
            overlap = torch.minimum(p_BTV[:, scored], log_q.exp()).sum(-1)
            chain_BN = overlap if chain_BN is None else chain_BN[:, :num_starts] * overlap
            is_drafted_BN = mask * response_mask_BT[:, 1 : 1 + num_starts]
            counts.append(int(is_drafted_BN.sum()))
            chains.append((chain_BN * is_drafted_BN).sum().item() / max(1, counts[-1]))
    weights = [STEP_WEIGHT_DECAY**step for step in range(len(terms))]
    loss = torch.stack([weight * term for weight, term in zip(weights, terms, strict=True)]).sum() / sum(weights)
    return DraftLoss(loss, tuple(chains), tuple(counts))


class DraftTrainer:
    """Owns the draft's optimisers and takes updates; nothing of it touches the policy."""

    def __init__(
        self,
        draft: DraftModule,
        learning_rate_matrices: float,
        learning_rate_others: float,
        max_grad_norm: float,
        autocast_dtype: torch.dtype | None = None,
    ) -> None:
        """autocast_dtype: of the forward pass, parameters staying in float32; None for float32 throughout."""
        self.draft = draft
        self.max_grad_norm = max_grad_norm
        self.autocast_dtype = autocast_dtype
        self.optimizers = build_optimizers(
            draft.named_parameters(),
            MuonOptimizer(learning_rate_matrices=learning_rate_matrices, learning_rate_others=learning_rate_others),
        )
        self._finite = FiniteGradients("the draft", "lower the drafter's learning rates")
        self._learning_rates = [optimizer.param_groups[0]["lr"] for optimizer in self.optimizers]

    def update(
        self,
        seen: PolicyPass,
        response_mask_BT: Tensor,
        policy_logits_BTV: Tensor,
        unroll_length: int,
        *,
        temperature: float,
        learning_rate_scale: float = 1.0,
    ) -> DraftUpdate:
        """One optimiser step on a pass of the policy over right-padded sequences, and the logits it gave.

        temperature: of the rollouts. A gradient that is not finite is not applied; see FiniteGradients.
        learning_rate_scale multiplies both learning rates, for schedules.
        """
        result = self.loss(seen, response_mask_BT, policy_logits_BTV, unroll_length, temperature)
        result.loss.backward()
        grad_norm = clip_grad_norm_(self.draft.parameters(), self.max_grad_norm).item()
        is_applied = self._finite.allow(grad_norm)
        for optimizer, learning_rate in zip(self.optimizers, self._learning_rates, strict=True):
            optimizer.param_groups[0]["lr"] = learning_rate * learning_rate_scale
            if is_applied:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        expected = result.expected_acceptance_length, result.expected_acceptance[0]
        return DraftUpdate(result.loss.item(), grad_norm, *expected)

    def loss(
        self,
        seen: PolicyPass,
        response_mask_BT: Tensor,
        policy_logits_BTV: Tensor,
        unroll_length: int,
        temperature: float,
    ) -> DraftLoss:
        """See draft_loss."""
        with torch.autocast(
            seen.token_ids_BT.device.type, self.autocast_dtype, enabled=self.autocast_dtype is not None
        ):
            step_logits = self.draft(seen, unroll_length)
        return draft_loss(step_logits, policy_logits_BTV, response_mask_BT, temperature, self.draft.vocabulary_V)

    def state_dict(self) -> dict[str, Any]:
        """Draft and optimiser state."""
        return {"draft": self.draft.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up state_dict(); this trainer's learning rates stay."""
        self.draft.load_state_dict(state["draft"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
