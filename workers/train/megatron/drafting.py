"""The draft beside a policy that is spread over ranks: it lives on rank 0, whose device trains it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from contract.config.drafter import OnlineDraftTraining
from contract.config.trainer import MegatronTrainer
from workers.data.batch import select_rows
from workers.model.draft import DraftModule, PolicyPass
from workers.model.draft_checkpoint import load_draft, save_draft
from workers.model.mtp import MtpModule
from workers.train.draft_trainer import DraftTrainer, DraftUpdate
from workers.train.logprobs import autocast_dtype
from workers.train.megatron import processors, totals
from workers.train.megatron.correspondence import Correspondence
from workers.train.megatron.draft_examples import CollectedExamples
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.shape import PolicyShape
from workers.train.megatron.weights import fetch
from workers.train.trainer import TrainingBatch

_SHARED = ("model.embed_tokens.weight", "model.norm.weight", "lm_head.weight")


class SharedWeights:
    """What an MTP module reads of the policy, in the places in which workers.model.qwen3.Qwen3Policy has it."""

    def __init__(self, shape: PolicyShape, weights: dict[str, Tensor]) -> None:
        embedding, norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
        self.head_weight = weights.get("lm_head.weight", embedding)
        self.model = nn.Module()
        self.model.embed_tokens = nn.Module()
        self.model.embed_tokens.weight = nn.Parameter(embedding, requires_grad=False)
        self.model.norm = nn.Module()
        self.model.norm.weight = nn.Parameter(norm, requires_grad=False)
        self.model.norm.eps = shape.dense.rms_norm_eps


class RankDraft:
    """The draft as every rank knows it: whole on rank 0, by what it taps elsewhere. All ranks make it together."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        shape: PolicyShape,
        *,
        trainer: MegatronTrainer,
        online: OnlineDraftTraining,
        correspondence: Correspondence,
        layout: RankLayout,
    ) -> None:
        self.online = online
        self._shape, self._correspondence, self._layout = shape, correspondence, layout
        self._draft: DraftModule | None = None
        self._trainer: DraftTrainer | None = None
        if layout.is_first:
            self._draft = load_draft(folder, shape.dense, kind).to(processors.device())
            self._trainer = DraftTrainer(
                self._draft,
                online.learning_rate_matrices,
                online.learning_rate_others,
                trainer.max_grad_norm,
                autocast_dtype(trainer),
            )
        told = None if self._draft is None else (self._draft.tap_layers, isinstance(self._draft, MtpModule))
        self.tap_layers, self._shares_weights = totals.share(told, layout)

    @property
    def num_wanted(self) -> int:
        """Responses of a step that it trains on."""
        return self.online.num_updates_per_step * self.online.batch_size

    def train(self, policy: nn.Module, batch: TrainingBatch, examples: CollectedExamples | None) -> dict[str, float]:
        """The step's updates, on rank 0; their metrics on every rank."""
        shared = self._shared(policy)
        updates: list[DraftUpdate] = []
        if self._trainer is not None and examples is not None:
            for rows in examples.rows.split(self.online.batch_size):
                updates.append(self._update(self._trainer, shared, batch, rows, examples))
        metrics = _metrics(updates) if updates else None
        return totals.share(metrics, self._layout)

    def export(self, policy: nn.Module) -> Iterator[tuple[str, Tensor]]:
        """What an engine packs of the draft, on rank 0; all ranks walk through it together."""
        shared = self._shared(policy)
        if self._draft is not None:
            yield from self._draft.export(shared).items()  # type: ignore[arg-type]

    def save(self, folder: Path) -> None:
        """In Hugging Face layout; rank 0 only."""
        if self._draft is not None:
            save_draft(self._draft, folder)

    def state_dict(self) -> dict[str, Any] | None:
        """Of draft and optimisers, on rank 0."""
        return None if self._trainer is None else self._trainer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """On rank 0; nothing elsewhere."""
        if self._trainer is not None:
            self._trainer.load_state_dict(state)

    def _update(
        self,
        trainer: DraftTrainer,
        shared: SharedWeights | None,
        batch: TrainingBatch,
        rows: Tensor,
        examples: CollectedExamples,
    ) -> DraftUpdate:
        device, part = processors.device(), select_rows(batch, rows)
        width = part.token_ids_BT.shape[1]
        features = examples.features_BTF(rows, width)
        seen = PolicyPass(
            shared,  # type: ignore[arg-type]
            part.token_ids_BT.to(device),
            None if features is None else features.to(device),
        )
        return trainer.update(
            seen,
            part.response_mask_BT.to(device),
            examples.logits_BTV(rows, width).to(device),
            self.online.unroll_length,
            temperature=batch.temperature,
        )

    def _shared(self, policy: nn.Module) -> SharedWeights | None:
        """The policy's present embedding, final norm and head on rank 0, where the draft reads them."""
        if not self._shares_weights:
            return None
        parameters = dict(policy.named_parameters())
        dtype = next(iter(parameters.values())).dtype
        weights: dict[str, Tensor] = {}
        for unit in self._correspondence.units():
            if unit.hf_names[0] in _SHARED:
                whole = fetch(unit, parameters, self._layout, dtype)
                if whole is not None:
                    weights[unit.hf_names[0]] = unit.split(whole)[0].float()
        return SharedWeights(self._shape, weights) if weights else None


def _metrics(updates: list[DraftUpdate]) -> dict[str, float]:
    count = len(updates)
    return {
        "draft/loss_nats": sum(update.loss_nats for update in updates) / count,
        "draft/grad_norm": updates[-1].grad_norm,
        "draft/expected_acceptance_length_tokens": sum(u.expected_acceptance_length for u in updates) / count,
        "draft/expected_acceptance_position_1_fraction": updates[0].expected_first_acceptance,
    }
