"""Foredeck's own rollout engine, in PyTorch."""

import time
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from contract.telemetry.metrics import MAX_DRAFT_LENGTH
from workers.model.config import ModelConfig
from workers.model.eagle3 import EagleConfig
from workers.rollout.drafters.eagle3 import Eagle3Drafter
from workers.rollout.engine import RolloutResult, SamplingParams
from workers.rollout.generation import Generation
from workers.rollout.packed_weights import PackedDraft, PackedPolicy

Precision = Literal["bfloat16", "float32"]


class TorchRolloutEngine:
    """Speculative or plain generation on packed weights. Fastest with one torch thread a process."""

    def __init__(
        self,
        model_config: ModelConfig,
        eos_token_id: int | Sequence[int],
        max_batch_size: int,
        precision: Precision,
        draft: EagleConfig | None = None,
        draft_length: int = 0,
    ) -> None:
        """draft_length: tokens proposed per round, in 1 .. 16 with a draft head. Weights come by update_policy()."""
        if draft is not None and not 1 <= draft_length <= MAX_DRAFT_LENGTH:
            raise ValueError(
                f"draft_length = {draft_length}: must be between 1 and {MAX_DRAFT_LENGTH} with a draft head"
            )
        self.model_config, self.draft_config = model_config, draft
        self.max_batch_size, self.draft_length = max_batch_size, draft_length
        self.dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[precision]
        eos_token_ids = [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id)
        self._eos_token_ids_E = torch.tensor(eos_token_ids, dtype=torch.int64)
        self._policy: PackedPolicy | None = None
        self._drafter: Eagle3Drafter | None = None

    @torch.inference_mode()
    def update_policy(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take up the policy's weights, by their Hugging Face names; the caller's tensors are copied."""
        self._policy = PackedPolicy.pack(state_dict, self.model_config, self.dtype)

    @torch.inference_mode()
    def update_draft(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take up the draft head's weights, by Eagle3Head's names; the caller's tensors are copied."""
        if self.draft_config is None:
            raise ValueError("this engine has no draft head: give it an EagleConfig when it is made")
        self._drafter = Eagle3Drafter(PackedDraft.pack(state_dict, self.draft_config, self.dtype))

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        speculate: bool = True,
        record_rounds_of: Sequence[int] = (),
    ) -> RolloutResult:
        """See RolloutEngine.generate. Without a draft head every call is autoregressive.

        Raises RuntimeError where weights were never given.
        """
        self._check(prompts, num_samples, params, record_rounds_of)
        is_speculating = speculate and self.draft_config is not None
        if self._policy is None or (is_speculating and self._drafter is None):
            missing = "update_policy()" if self._policy is None else "update_draft()"
            raise RuntimeError(f"the engine has no weights yet: call {missing} before generate()")
        started = time.perf_counter()
        generation = Generation(
            self._policy,
            prompts,
            num_samples,
            params,
            max_batch_size=self.max_batch_size,
            eos_token_ids_E=self._eos_token_ids_E,
            drafter=self._drafter if is_speculating else None,
            draft_length=self.draft_length,
            record_rounds_of=record_rounds_of,
        )
        completions, counters = generation.run()
        return RolloutResult(completions, counters, time.perf_counter() - started)

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
            raise ValueError(f"record_rounds_of has {outside[0]}: must be below {len(prompts) * num_samples}")
