"""The policy's training in Megatron-core: one object a rank, whose methods all ranks call together.

Every rank gets the whole batch and takes its share. Sums and normalisers are those of the whole batch, whatever the
layout.

Shape suffixes: B responses, T tokens.
"""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import torch
from megatron.core.models.gpt import GPTModel
from torch import Tensor

from contract.config.drafter import OnlineDraftTraining
from contract.config.grpo import GrpoConfig
from contract.config.trainer import MegatronTrainer
from workers.algo.lossless.observations import AuditObservations
from workers.train.audit_pass import AuditPass, MismatchSums
from workers.train.megatron import processors, totals
from workers.train.megatron.batch_pass import BatchPass
from workers.train.megatron.checkpoint import load_ranks, save_ranks
from workers.train.megatron.checks import check_layout
from workers.train.megatron.correspondence import Correspondence
from workers.train.megatron.draft_examples import CollectedExamples, DraftExamples
from workers.train.megatron.drafting import RankDraft
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.micro_batches import MicroBatch
from workers.train.megatron.model import build_model, padded_vocabulary, parameter_dtype, with_gradients
from workers.train.megatron.optimizer import PolicyOptimizer
from workers.train.megatron.policy_folder import write_policy
from workers.train.megatron.scores import ResponseScores
from workers.train.megatron.shape import PolicyShape
from workers.train.megatron.update import PolicyUpdates
from workers.train.megatron.weights import export_weights, load_weights
from workers.train.trainer import LogprobResult, TrainingBatch

_Given, _Result = ParamSpec("_Given"), TypeVar("_Result")


def _together(doing: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """For a method that all ranks call together; see RankLayout.together()."""

    def wrap(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @functools.wraps(method)
        def call(*given: _Given.args, **named: _Given.kwargs) -> _Result:
            trainer = given[0]
            assert isinstance(trainer, MegatronPolicyTrainer)
            with trainer._layout.together(doing):
                return method(*given, **named)

        return call

    return wrap


class MegatronPolicyTrainer:
    """This rank's part of the policy; see workers.train.trainer.PolicyTrainer."""

    def __init__(
        self,
        policy_folder: Path,
        draft: tuple[Path, str] | None,
        *,
        trainer: MegatronTrainer,
        grpo: GrpoConfig,
        online: OnlineDraftTraining,
        layout: RankLayout,
        seed: int,
    ) -> None:
        """policy_folder: in Hugging Face layout; the reference too, where grpo.kl_penalty is above 0. draft: folder and
        kind, None without one. Raises CheckpointError or LayoutError where they do not go together."""
        self._trainer, self._layout = trainer, layout
        self.shape = PolicyShape.read(policy_folder)
        check_layout(trainer, self.shape)
        self._correspondence = Correspondence(
            self.shape,
            padded_vocabulary=padded_vocabulary(self.shape, trainer.tensor_parallel_size),
            pipeline_size=trainer.pipeline_parallel_size,
            expert_size=trainer.expert_parallel_size,
        )
        self._pass = BatchPass(trainer, layout, self.shape.dense.vocab_size)
        with layout.together("taking up the policy"):
            self.policy = self._model(policy_folder)
            # After the weights are in place, for the optimiser copies them.
            self._optimizer = PolicyOptimizer(with_gradients(self.policy, trainer), trainer)
            self._reference = self._model(policy_folder).requires_grad_(False) if grpo.kl_penalty else None
        self._updates = PolicyUpdates(self._optimizer, grpo, self._pass, layout)
        self._num_updates = grpo.num_updates_per_step
        self._draft = self._make_draft(*draft, online) if draft is not None else None
        self._examples: CollectedExamples | None = None
        self._generator = torch.Generator().manual_seed(seed)
        """Draws alike on every rank."""
        self._audit_generator = torch.Generator().manual_seed(seed + 1 + layout.place.data)
        """Draws alike on ranks that see the same responses."""

    @_together("computing log-probabilities")
    def compute_logprobs(self, batch: TrainingBatch) -> LogprobResult:
        """See PolicyTrainer; the audit's observations are on rank 0 only. Also keeps what train_draft() needs."""
        rows = torch.arange(len(batch.token_ids_BT))
        examples = self._choose_draft_examples(batch)
        logprobs, entropy_sum = torch.zeros_like(batch.engine_logprobs_BT), 0.0
        audit = AuditPass(self._audit_generator)

        def read(scores: ResponseScores, micro_batch: MicroBatch) -> None:
            nonlocal entropy_sum
            assert micro_batch.part is not None
            self._pass.fill(logprobs, scores, micro_batch)
            entropy_sum += scores.entropy_sum()
            audit.take(scores.distributions(), micro_batch.part)
            if examples is not None:
                examples.take_scores(scores, micro_batch)

        self._pass.read(self.policy, batch, rows, read, examples)
        reference = None if self._reference is None else self._pass.logprobs_BT(self._reference, batch, rows)
        self._examples = None if examples is None else self._collect(examples, batch)
        metrics = self._logprob_metrics(entropy_sum, audit, batch)
        told = audit.observations() if self._layout.speaks_for_scores else AuditObservations()
        joined = totals.join_rows(logprobs, self._layout)
        return LogprobResult(joined, reference, metrics, totals.join_observations(told, self._layout))

    @_together("updating the policy")
    def train_step(self, batch: TrainingBatch, logprobs: LogprobResult, advantages_B: Tensor) -> dict[str, float]:
        """See TorchPolicyTrainer.train_step(); logprobs are the whole batch's, on every rank."""
        order = torch.randperm(len(advantages_B), generator=self._generator)
        updates = [
            metrics
            for share in range(self._num_updates)
            if (metrics := self._updates.update(batch, logprobs, advantages_B, order[share :: self._num_updates]))
        ]
        if not updates:
            return {}
        mean = {name: sum(update[name] for update in updates) / len(updates) for name in updates[0]}
        mean["policy/grad_norm"] = updates[-1]["policy/grad_norm"]
        mean["policy/kl_update_nats"] = self._updates.kl_update(self.policy, batch, logprobs)
        return mean

    @_together("training the draft")
    def train_draft(self, batch: TrainingBatch) -> dict[str, float]:
        """See PolicyTrainer. Trains on features and scores of the policy that compute_logprobs() saw."""
        examples, self._examples = self._examples, None
        if self._draft is None or not totals.share(examples is not None, self._layout):
            return {}
        return self._draft.train(self.policy, batch, examples)

    def export_weights(self, part: Literal["policy", "draft"]) -> Iterator[tuple[str, Tensor]]:
        """Weights by their Hugging Face names in a fixed order, or what an engine packs of the draft, on rank 0.

        All ranks walk through it to its end, together; nothing comes out of it elsewhere, nor where there is no draft.
        """
        with self._layout.guarded(f"exporting the {part}"):
            if part == "policy":
                yield from export_weights(self.policy, self._correspondence, self._layout)
            elif self._draft is not None:
                yield from self._draft.export(self.policy)

    @_together("saving a checkpoint")
    def save(self, path: Path) -> None:
        """Folders `policy` and `draft` in Hugging Face layout, and what resuming needs in `ranks` and `state.pt`."""
        write_policy(path / "policy", self.shape, self.export_weights("policy"), is_writer=self._layout.is_first)
        save_ranks(path / "ranks", self._optimizer, self._reference, self._layout)
        audit_generators = totals.gather(self._audit_generator.get_state(), self._layout)
        if self._layout.is_first:
            state = {"generator": self._generator.get_state(), "audit_generators": audit_generators}
            if self._draft is not None:
                self._draft.save(path / "draft")
                state["draft"] = self._draft.state_dict()
            torch.save(state, path / "state.pt")
        totals.share(None, self._layout)  # nobody goes on before the folder is whole

    @_together("loading a checkpoint")
    def load(self, path: Path) -> None:
        """Raises ValueError where the folder was not written by a trainer of this configuration."""
        state = torch.load(path / "state.pt", weights_only=True)
        if self._draft is not None and "draft" not in state:
            raise ValueError(f"{path} holds no draft, but the configuration has a drafter")
        load_ranks(path / "ranks", self._optimizer, self._reference, self._layout)
        self._generator.set_state(state["generator"])
        if len(state["audit_generators"]) == len(self._layout.places):
            self._audit_generator.set_state(state["audit_generators"][self._layout.place.rank])
        if self._draft is not None:
            self._draft.load_state_dict(state["draft"])

    def _model(self, folder: Path) -> GPTModel:
        model = build_model(self.shape, self._trainer, self._layout).to(processors.device())
        load_weights(model, folder, self._correspondence, self._layout)
        return model

    def _make_draft(self, folder: Path, kind: str, online: OnlineDraftTraining) -> RankDraft:
        return RankDraft(
            folder,
            kind,
            self.shape,
            trainer=self._trainer,
            online=online,
            correspondence=self._correspondence,
            layout=self._layout,
        )

    def _choose_draft_examples(self, batch: TrainingBatch) -> DraftExamples | None:
        """Drawn alike on every rank; each response once before any comes again."""
        if self._draft is None or not self._draft.num_wanted:
            return None
        num_rows, wanted = len(batch.token_ids_BT), self._draft.num_wanted
        orders = [torch.randperm(num_rows, generator=self._generator) for _ in range(0, wanted, num_rows)]
        rows = torch.cat(orders)[:wanted]
        return DraftExamples(rows, batch, self._draft.tap_layers, self._correspondence, self._layout)

    def _collect(self, examples: DraftExamples, batch: TrainingBatch) -> CollectedExamples | None:
        dense = self.shape.dense
        return examples.collect(parameter_dtype(self._trainer), (dense.hidden_size, dense.vocab_size), batch)

    def _logprob_metrics(self, entropy_sum: float, audit: AuditPass, batch: TrainingBatch) -> dict[str, float]:
        sums, own = audit.mismatch_sums(), [0.0] * 4
        if self._layout.speaks_for_scores:
            own = [entropy_sum, sums.num_compared, sums.kl_sum, sums.error_sum]
        entropy, *mismatch = totals.add_up(own, self._layout)
        entropy_nats = entropy / batch.response_mask_BT.sum().item()
        return {"policy/entropy_nats": entropy_nats} | MismatchSums(*mismatch).metrics()
