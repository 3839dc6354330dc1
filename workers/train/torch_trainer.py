"""The policy's training in plain PyTorch.

Shapes: B responses, T tokens, V vocabulary. Padding is on the right, so causal attention needs no mask.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from contract.config.drafter import OnlineDraftTraining
from contract.config.grpo import GrpoConfig
from contract.config.trainer import TorchTrainer
from workers.algo.loss import grpo_loss, k3
from workers.data.batch import select_rows
from workers.model.draft import DraftModule, PolicyPass
from workers.model.draft_checkpoint import save_draft
from workers.model.hf_checkpoint import load_policy, save_policy
from workers.model.qwen3 import PolicyOutput, Qwen3Policy
from workers.train.audit_pass import AuditPass
from workers.train.device import training_device
from workers.train.draft_trainer import DraftTrainer
from workers.train.finite import FiniteGradients
from workers.train.logprobs import autocast_dtype, distributions, token_entropies, token_logprobs
from workers.train.optimizer import build_optimizers
from workers.train.trainer import LogprobResult, TrainingBatch
from workers.train.weight_sync import Part

_KL_UPDATE_ROWS = 16
"""Responses on which the distance of an update is measured: one small forward pass."""


@dataclass(slots=True)
class _DraftExamples:
    """What the logprob pass keeps of some responses for draft training, without gradient."""

    rows: Tensor
    """The responses, in the order in which they are trained on; all of them before any comes again."""
    features: dict[int, Tensor] = field(default_factory=dict)
    """[T, features] by response, where the draft reads any."""
    logits: dict[int, Tensor] = field(default_factory=dict)
    """[T, V] by response."""

    def take(self, rows: Tensor, output: PolicyOutput) -> None:
        """Keep what is wanted of one micro-batch."""
        wanted = set(self.rows.tolist())
        for at, row in enumerate(rows.tolist()):
            if row in wanted:
                # Copies: a view would keep the whole micro-batch alive.
                self.logits[row] = output.logits_BTV[at].clone()
                if output.features_BTF is not None:
                    self.features[row] = output.features_BTF[at].clone()


class TorchPolicyTrainer:
    """One process, one copy of the policy; see workers.train.trainer.PolicyTrainer."""

    def __init__(
        self,
        policy: Qwen3Policy,
        reference: Qwen3Policy | None,
        draft: DraftModule | None,
        *,
        trainer: TorchTrainer,
        grpo: GrpoConfig,
        online: OnlineDraftTraining,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        """reference: the starting policy, needed where grpo.kl_penalty is above 0; draft: None without speculation.
        device: the models are moved there; without one to a GPU where there is one. Batches come from main memory."""
        self._device = device or training_device()
        self.policy = policy.to(self._device)
        self._reference = reference.to(self._device) if reference is not None else None
        self._config, self._grpo, self._online = trainer, grpo, online
        self._optimizers = build_optimizers(policy.named_parameters(), trainer.optimizer)
        self._draft = self._draft_trainer(draft.to(self._device)) if draft is not None else None
        self._finite = FiniteGradients("the policy", "lower the learning rates of trainer.optimizer")
        self._generator = torch.Generator().manual_seed(seed)
        self._examples: _DraftExamples | None = None

    def compute_logprobs(self, batch: TrainingBatch) -> LogprobResult:
        """See PolicyTrainer; also keeps the features that train_draft() needs."""
        examples = self._choose_draft_examples(len(batch.token_ids_BT))
        logprobs, entropy, reference = (torch.zeros_like(batch.engine_logprobs_BT) for _ in range(3))
        audit = AuditPass(self._generator)
        with torch.no_grad():
            for rows, part in self._micro_batches(batch, torch.arange(len(logprobs))):
                log_p = self._distributions(self.policy, part, rows, examples)
                width = part.token_ids_BT.shape[1]
                logprobs[rows, :width] = token_logprobs(log_p, part).cpu()
                entropy[rows, :width] = token_entropies(log_p, part).cpu()
                audit.take(log_p, part)
                if self._reference is not None:
                    reference[rows, :width] = token_logprobs(self._distributions(self._reference, part), part).cpu()
        self._examples = examples
        metrics = {"policy/entropy_nats": (entropy.sum() / batch.response_mask_BT.sum()).item()}
        metrics |= audit.mismatch_metrics()
        has_reference = self._reference is not None
        return LogprobResult(logprobs, reference if has_reference else None, metrics, audit.observations())

    def train_step(self, batch: TrainingBatch, logprobs: LogprobResult, advantages_B: Tensor) -> dict[str, float]:
        """See PolicyTrainer. Makes grpo.num_updates_per_step updates, each on its share of the responses.

        Responses of zero advantage have zero gradient and are left out of the backward pass unless a KL penalty gives
        them one. Empty where no response teaches anything.
        """
        order = torch.randperm(len(advantages_B), generator=self._generator)
        updates = [
            metrics
            for share in range(self._grpo.num_updates_per_step)
            if (metrics := self._update(batch, logprobs, advantages_B, order[share :: self._grpo.num_updates_per_step]))
        ]
        if not updates:
            return {}
        mean = {name: sum(update[name] for update in updates) / len(updates) for name in updates[0]}
        mean["policy/grad_norm"] = updates[-1]["policy/grad_norm"]
        mean["policy/kl_update_nats"] = self._kl_update(batch, logprobs)
        return mean

    def train_draft(self, batch: TrainingBatch) -> dict[str, float]:
        """See PolicyTrainer. Trains on features and logits of the policy that compute_logprobs() saw."""
        if self._draft is None or self._examples is None or not self._online.num_updates_per_step:
            return {}
        examples, self._examples = self._examples, None
        updates = []
        for rows in examples.rows.split(self._online.batch_size):
            part = select_rows(batch, rows).to(self._device)
            width = part.token_ids_BT.shape[1]
            features = _stack(examples.features, rows, width) if self._draft.draft.tap_layers else None
            updates.append(
                self._draft.update(
                    PolicyPass(self.policy, part.token_ids_BT, features),
                    part.response_mask_BT,
                    _stack(examples.logits, rows, width),
                    self._online.unroll_length,
                    temperature=batch.temperature,
                )
            )
        return {
            "draft/loss_nats": sum(update.loss_nats for update in updates) / len(updates),
            "draft/grad_norm": updates[-1].grad_norm,
            "draft/expected_acceptance_length_tokens": sum(u.expected_acceptance_length for u in updates)
            / len(updates),
            "draft/expected_acceptance_position_1_fraction": updates[0].expected_first_acceptance,
        }

    def export_weights(self, part: Part) -> Iterator[tuple[str, Tensor]]:
        """See WeightSource: the policy under the names of a Qwen3 checkpoint in Hugging Face layout; of the draft,
        where there is one, what an engine packs."""
        if part == "policy":
            yield from self.policy.state_dict().items()
        elif self._draft is not None:
            yield from self._draft.draft.export(self.policy).items()

    def save(self, path: Path) -> None:
        """Folders `policy`, `draft` and `reference` in Hugging Face layout, and the optimisers in `state.pt`."""
        save_policy(self.policy, path / "policy")
        if self._reference is not None:
            save_policy(self._reference, path / "reference")
        state = {
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "generator": self._generator.get_state(),
        }
        if self._draft is not None:
            save_draft(self._draft.draft, path / "draft")
            state["draft"] = self._draft.state_dict()
        torch.save(state, path / "state.pt")

    def load(self, path: Path) -> None:
        """Raises ValueError where the folder was not written by a trainer of this configuration."""
        state = torch.load(path / "state.pt", map_location="cpu", weights_only=True)
        self.policy.load_state_dict(load_policy(path / "policy").state_dict())
        if self._reference is not None:
            self._reference.load_state_dict(load_policy(path / "reference").state_dict())
        for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self._generator.set_state(state["generator"])
        if self._draft is not None:
            if "draft" not in state:
                raise ValueError(f"{path} holds no draft, but the configuration has a drafter")
            self._draft.load_state_dict(state["draft"])

    def _draft_trainer(self, draft: DraftModule) -> DraftTrainer:
        return DraftTrainer(
            draft,
            self._online.learning_rate_matrices,
            self._online.learning_rate_others,
            self._config.max_grad_norm,
            autocast_dtype(self._config),
        )

    def _update(
        self, batch: TrainingBatch, old: LogprobResult, advantages_B: Tensor, share: Tensor
    ) -> dict[str, float]:
        """One optimiser step on a share of the responses; empty where none of them has a gradient."""
        rows = share if self._grpo.kl_penalty else share[advantages_B[share] != 0]
        if not len(rows):
            return {}
        num_tokens = batch.response_mask_BT[share].sum().item()
        reference = old.reference_logprobs_BT
        sums = torch.zeros(3, dtype=torch.float64)
        for chosen, part in self._micro_batches(batch, rows):
            width = part.token_ids_BT.shape[1]
            result = grpo_loss(
                token_logprobs(self._distributions(self.policy, part), part),
                old.logprobs_BT[chosen, :width].to(self._device),
                advantages_B[chosen].to(self._device),
                part.response_mask_BT,
                normalizer=num_tokens,
                clip_low=self._grpo.clip_ratio_low,
                clip_high=self._grpo.clip_ratio_high,
                reference_logprobs_BT=None if reference is None else reference[chosen, :width].to(self._device),
                kl_penalty=self._grpo.kl_penalty,
            )
            result.loss.backward()
            sums += torch.stack([result.loss.detach(), result.num_clipped, result.kl_reference_sum]).double().cpu()
        return self._apply(sums.tolist(), num_tokens)

    def _apply(self, sums: list[float], num_tokens: float) -> dict[str, float]:
        """Clip the gradient, step where it is finite, and name what was measured."""
        loss, num_clipped, kl_sum = sums
        grad_norm = clip_grad_norm_(self.policy.parameters(), self._config.max_grad_norm).item()
        is_applied = self._finite.allow(grad_norm)
        for optimizer in self._optimizers:
            if is_applied:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        metrics = {
            "policy/loss": loss,
            "policy/grad_norm": grad_norm,
            "policy/clip_fraction": num_clipped / num_tokens,
        }
        return metrics if self._reference is None else metrics | {"policy/kl_reference_nats": kl_sum / num_tokens}

    def _kl_update(self, batch: TrainingBatch, old: LogprobResult) -> float:
        """KL of the policy before the update from the one after it, on some of the step's tokens (k3 estimate)."""
        rows = torch.arange(0, len(batch.token_ids_BT), max(1, len(batch.token_ids_BT) // _KL_UPDATE_ROWS))
        part = select_rows(batch, rows)
        with torch.no_grad():
            on_device = part.to(self._device)
            new = token_logprobs(self._distributions(self.policy, on_device), on_device).cpu()
        mask = part.response_mask_BT
        return (k3(old.logprobs_BT[rows, : mask.shape[1]], new, mask).sum() / mask.sum()).item()

    def _micro_batches(self, batch: TrainingBatch, rows: Tensor) -> Iterator[tuple[Tensor, TrainingBatch]]:
        """(row numbers, their part of the batch), responses of like length together so that little is padding."""
        lengths = (batch.response_mask_BT[rows] * torch.arange(batch.response_mask_BT.shape[1])).amax(dim=1)
        for chosen in rows[lengths.argsort(stable=True)].split(self._config.micro_batch_size):
            yield chosen, select_rows(batch, chosen).to(self._device)

    def _distributions(
        self,
        policy: Qwen3Policy,
        part: TrainingBatch,
        rows: Tensor | None = None,
        examples: _DraftExamples | None = None,
    ) -> Tensor:
        """Log-probabilities [B, T, V] at the sampling temperature; keeps what examples wants."""
        taps = self._draft.draft.tap_layers if examples is not None and self._draft is not None else ()
        dtype = autocast_dtype(self._config)
        with torch.autocast(self._device.type, dtype, enabled=dtype is not None):
            output = policy(part.token_ids_BT, taps)
        if examples is not None and rows is not None:
            examples.take(rows, output)
        return distributions(output.logits_BTV, part.temperature)

    def _choose_draft_examples(self, num_rows: int) -> _DraftExamples | None:
        wanted = self._online.num_updates_per_step * self._online.batch_size
        if self._draft is None or not wanted:
            return None
        orders = [torch.randperm(num_rows, generator=self._generator) for _ in range(0, wanted, num_rows)]
        return _DraftExamples(torch.cat(orders)[:wanted])


def _stack(by_row: Mapping[int, Tensor], rows: Tensor, width: int) -> Tensor:
    """[B, width, ...] of rows that were kept with widths of their own; what is missing on the right is padding."""
    parts = [by_row[row][:width] for row in rows.tolist()]
    return torch.stack([torch.nn.functional.pad(part, (0, 0, 0, width - len(part))) for part in parts])
