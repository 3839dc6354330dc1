"""One optimiser step on a share of a step's responses.

Shape suffixes: B responses, T tokens.
"""

import torch
from torch import Tensor

from contract.config.grpo import GrpoConfig
from workers.algo.loss import GrpoLoss, grpo_loss, k3
from workers.train.finite import FiniteGradients
from workers.train.megatron import totals
from workers.train.megatron.batch_pass import BatchPass
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.micro_batches import MicroBatch
from workers.train.megatron.optimizer import PolicyOptimizer
from workers.train.trainer import LogprobResult, TrainingBatch

_KL_UPDATE_ROWS = 16
"""Responses on which the distance of an update is measured: one small forward pass."""


class PolicyUpdates:
    """Updates of the policy; all ranks call its methods together."""

    def __init__(self, optimizer: PolicyOptimizer, grpo: GrpoConfig, batch_pass: BatchPass, layout: RankLayout) -> None:
        self._optimizer, self._grpo, self._pass, self._layout = optimizer, grpo, batch_pass, layout
        self._finite = FiniteGradients("the policy", "lower the learning rates of trainer.optimizer")

    def update(self, batch: TrainingBatch, old: LogprobResult, advantages_B: Tensor, share: Tensor) -> dict[str, float]:
        """One optimiser step on a share of the responses; empty where none of them has a gradient.

        The loss is divided by the response tokens of the whole share, on every rank, before anything is added up.
        """
        rows = share if self._grpo.kl_penalty else share[advantages_B[share] != 0]
        if not len(rows):
            return {}
        num_tokens = batch.response_mask_BT[share].sum().item()
        sums = torch.zeros(3, dtype=torch.float64)

        def loss(logprobs_BT: Tensor, micro_batch: MicroBatch) -> Tensor:
            result = self._loss(logprobs_BT, micro_batch, old, advantages_B, num_tokens)
            if self._layout.speaks_for_scores:
                seen = torch.stack([result.loss.detach(), result.num_clipped, result.kl_reference_sum])
                sums.add_(seen.double().cpu())
            return result.loss

        self._optimizer.zero_gradients()
        self._pass.accumulate(self._optimizer.model, batch, rows, loss)
        return self._apply(totals.add_up(sums.tolist(), self._layout), num_tokens, old)

    def kl_update(self, policy: torch.nn.Module, batch: TrainingBatch, old: LogprobResult) -> float:
        """KL of the policy before the update from the one after it, on some of the step's tokens (k3 estimate)."""
        num_rows = len(batch.token_ids_BT)
        rows = torch.arange(0, num_rows, max(1, num_rows // _KL_UPDATE_ROWS))
        new = self._pass.logprobs_BT(policy, batch, rows)
        mask = torch.zeros_like(batch.response_mask_BT)
        mask[rows] = batch.response_mask_BT[rows]
        return ((k3(old.logprobs_BT, new, mask) * mask).sum() / mask.sum()).item()

    def _loss(
        self,
        logprobs_BT: Tensor,
        micro_batch: MicroBatch,
        old: LogprobResult,
        advantages_B: Tensor,
        num_tokens: float,
    ) -> GrpoLoss:
        part, rows, device = micro_batch.part, micro_batch.rows, logprobs_BT.device
        assert part is not None
        width = part.token_ids_BT.shape[1]
        reference = old.reference_logprobs_BT
        return grpo_loss(
            logprobs_BT,
            old.logprobs_BT[rows, :width].to(device),
            advantages_B[rows].to(device),
            part.response_mask_BT,
            normalizer=num_tokens,
            clip_low=self._grpo.clip_ratio_low,
            clip_high=self._grpo.clip_ratio_high,
            reference_logprobs_BT=None if reference is None else reference[rows, :width].to(device),
            kl_penalty=self._grpo.kl_penalty,
        )

    def _apply(self, sums: list[float], num_tokens: float, old: LogprobResult) -> dict[str, float]:
        """Clip the gradient, step where it is finite, and name what was measured."""
        loss, num_clipped, kl_sum = sums
        grad_norm = self._optimizer.grad_norm()
        if self._finite.allow(grad_norm):
            self._optimizer.step(grad_norm)
        metrics = {
            "policy/loss": loss,
            "policy/grad_norm": grad_norm,
            "policy/clip_fraction": num_clipped / num_tokens,
        }
        if old.reference_logprobs_BT is None:
            return metrics
        return metrics | {"policy/kl_reference_nats": kl_sum / num_tokens}
