"""Foredeck's own rollout engine, in PyTorch."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.algo.draft_length import DraftLengthController
from workers.algo.round_costs import CostTable
from workers.model.config import ModelConfig
from workers.rollout.draft_lengths import (
    DraftLengths,
    FixedDraftLength,
    ScheduledDraftLengths,
    lengthened,
    measure_costs,
)
from workers.rollout.drafters.drafter import Drafter, Drafting, Remembering
from workers.rollout.drafters.padding import PaddingDrafter
from workers.rollout.engine import RolloutResult, SamplingParams, SpeculationCounters
from workers.rollout.generation import Generation
from workers.rollout.in_place import OnDevice, overwrite
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.round_log import RoundLog
from workers.train.weight_sync import Part

Precision = Literal["bfloat16", "float32"]


class TorchRolloutEngine:
    """Speculative or plain generation on packed weights. Fastest with one torch thread a process."""

    def __init__(
        self,
        model_config: ModelConfig,
        eos_token_id: int | Sequence[int],
        max_batch_size: int,
        precision: Precision,
        drafting: Drafting | None = None,
        device: torch.device | None = None,
    ) -> None:
        """drafting: None generates autoregressively only. Weights come by update_policy() and update_draft().

        device: None for the first CUDA device where there is one, else the processor. Weights from elsewhere are moved.
        """
        if drafting is not None and not 1 <= drafting.draft_length <= MAX_DRAFT_LENGTH:
            raise ValueError(f"draft_length = {drafting.draft_length}: must be between 1 and {MAX_DRAFT_LENGTH}")
        self.model_config, self.drafting = model_config, drafting
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.max_batch_size = max_batch_size
        self.dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[precision]
        self.eos_token_ids = frozenset([eos_token_id] if isinstance(eos_token_id, int) else eos_token_id)
        self._policy: PackedPolicy | None = None
        self._drafter: Drafter | None = None
        self._draft_lengths: DraftLengths | None = None

    @torch.inference_mode()
    def update_policy(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take up the policy's weights, by their Hugging Face names; the caller's tensors are copied."""
        packed = PackedPolicy.pack(OnDevice(state_dict, self.device), self.model_config, self.dtype)
        if self._policy is not None and packed.operations.is_static:
            overwrite(self._policy, packed)
        else:
            self._policy = packed
        if self.drafting is not None and not self.drafting.has_weights and self._drafter is None:
            self._drafter = self.drafting.build(self._policy, None)

    @torch.inference_mode()
    def update_draft(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take up the draft's weights, by its own names; the caller's tensors are copied. The policy's come first."""
        if self.drafting is None or not self.drafting.has_weights:
            raise ValueError("this engine's drafter has no weights: give it another one when it is made")
        policy = self._policy_or_raise()
        built = self.drafting.build(policy, OnDevice(state_dict, self.device))
        if self._drafter is not None and policy.operations.is_static:
            overwrite(self._drafter, built)
        else:
            self._drafter = built

    def update_weights(self, part: Part, weights: Iterable[tuple[str, Tensor]]) -> None:
        """See WeightTarget. Packing wants several tensors at a time, so that they are collected: a second copy of the
        weights is in memory until they are packed."""
        collected = {name: tensor.clone() for name, tensor in weights}
        (self.update_policy if part == "policy" else self.update_draft)(collected)

    def close(self) -> None:
        """Give the memory of the weights back."""
        self._policy = self._drafter = self._draft_lengths = None

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        speculate: bool = True,
        record_rounds_of: Sequence[int] = (),
        evidence_of: Sequence[int] = (),
        remember: bool = True,
    ) -> RolloutResult:
        """See RolloutEngine.generate. Without a drafter every call is autoregressive.

        Raises RuntimeError where weights were never given.
        """
        self._check(prompts, num_samples, params, [*record_rounds_of, *evidence_of])
        drafter = self._drafter_or_raise() if speculate and self.drafting is not None else None
        if not remember and isinstance(drafter, Remembering):
            drafter = drafter.forgetful()
        lengths = self._lengths(prompts, params) if drafter is not None else FixedDraftLength(0)
        started = time.perf_counter()
        log = RoundLog(record_rounds_of, evidence_of)
        generation = self._generation(prompts, num_samples, params, drafter, lengths, log)
        completions = generation.run()
        seconds = time.perf_counter() - started
        if drafter is None:
            return RolloutResult(completions, SpeculationCounters(), seconds)
        statistics = generation.statistics
        return RolloutResult(completions, statistics.counters(), seconds, statistics.costs(), log.evidence())

    def _generation(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        drafter: Drafter | None,
        draft_lengths: DraftLengths,
        log: RoundLog,
    ) -> Generation:
        return Generation(
            self._policy_or_raise(),
            prompts,
            num_samples,
            params,
            max_batch_size=self.max_batch_size,
            eos_token_ids=self.eos_token_ids,
            drafter=drafter,
            draft_length=draft_lengths,
            is_lookup=self.drafting is not None and not self.drafting.has_weights,
            log=log,
        )

    def _lengths(self, prompts: Sequence[Sequence[int]], params: SamplingParams) -> DraftLengths:
        """What decides draft lengths; its costs are measured on the first call's prompts."""
        assert self.drafting is not None
        if not self.drafting.is_controlled:
            return FixedDraftLength(self.drafting.draft_length)
        if self._draft_lengths is None:
            self._draft_lengths = self._controller(prompts, params)
        return self._draft_lengths

    def _controller(self, prompts: Sequence[Sequence[int]], params: SamplingParams) -> DraftLengthController:
        drafting = self.drafting
        assert drafting is not None
        drafter = self._drafter_or_raise() if drafting.has_weights else PaddingDrafter()

        def run(number: int, schedule: ScheduledDraftLengths, is_far: bool) -> None:
            """Rounds of so many sequences; none ends before the schedule does."""
            growth = schedule.num_tokens if drafting.has_weights else schedule.num_rounds
            before = params.max_new_tokens // 2 if is_far else 0
            some = [lengthened(prompts[i % len(prompts)], before) for i in range(number)]
            endless = replace(params, max_new_tokens=growth + 1)
            generation = self._generation(some, 1, endless, drafter, schedule, RoundLog((), ()))
            generation.eos_token_ids = frozenset()
            generation.run(schedule.num_rounds)

        costs = CostTable(measure_costs(run, self.max_batch_size, drafting.draft_length), drafting.draft_length)
        return DraftLengthController(drafting.draft_length, costs, tile=self._policy_or_raise().operations.tile)

    def _policy_or_raise(self) -> PackedPolicy:
        if self._policy is None:
            raise RuntimeError("the engine has no weights yet: call update_policy() first")
        return self._policy

    def _drafter_or_raise(self) -> Drafter:
        self._policy_or_raise()
        if self._drafter is None:
            raise RuntimeError("the engine's draft has no weights yet: call update_draft() before generate()")
        return self._drafter

    def _check(
        self, prompts: Sequence[Sequence[int]], num_samples: int, params: SamplingParams, record: Sequence[int]
    ) -> None:
        """Raise ValueError for what cannot be generated, naming the field, the value and the mend."""
        room = self.model_config.max_position_embeddings - params.max_new_tokens
        if not prompts:
            raise ValueError("prompts is empty: give at least one")
        for index, prompt in enumerate(prompts):
            if not 1 <= len(prompt) <= room:
                raise ValueError(
                    f"prompts[{index}] has {len(prompt)} tokens: must have between 1 and {room}, so that "
                    f"max_new_tokens = {params.max_new_tokens} fit into max_position_embeddings = "
                    f"{self.model_config.max_position_embeddings}"
                )
            if not all(0 <= token < self.model_config.vocab_size for token in prompt):
                raise ValueError(f"prompts[{index}] has a token outside 0 .. {self.model_config.vocab_size - 1}")
        if num_samples < 1:
            raise ValueError(f"num_samples = {num_samples}: must be at least 1")
        if params.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens = {params.max_new_tokens}: must be at least 1")
        if not params.temperature >= 0:
            raise ValueError(f"temperature = {params.temperature}: must be 0 (greedy) or above")
        if outside := [index for index in record if not 0 <= index < len(prompts) * num_samples]:
            raise ValueError(
                f"record_rounds_of or evidence_of has {outside[0]}: must be below {len(prompts) * num_samples}"
            )
