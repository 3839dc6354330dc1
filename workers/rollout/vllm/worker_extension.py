"""What this engine adds to each of vLLM's workers. Importing it mends vLLM, before the worker is made."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from vllm.config import set_current_vllm_config
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.model_loader.reload.layerwise import (
    finalize_layerwise_reload,
    get_layerwise_info,
    initialize_layerwise_reload,
)
from vllm.v1.sample import rejection_sampler

from workers.rollout.vllm.library import draft_model_of
from workers.rollout.vllm.lookup_clock import LOOKUP_CLOCK
from workers.rollout.vllm.mends import mend_vllm
from workers.rollout.vllm.verification_log import VerificationLog, Verified

mend_vllm()

Part = Literal["policy", "draft"]


class RolloutWorker:
    """Mixed into vLLM's worker class; its methods are called by LLM.collective_rpc()."""

    model_runner: Any
    vllm_config: Any

    def rollout_attach(self) -> None:
        """Get between the model runner and what it calls. Raises RuntimeError where that is not there."""
        runner = self.model_runner
        if not hasattr(runner, "input_batch") or not hasattr(runner, "propose_draft_token_ids"):
            raise RuntimeError("vLLM runs another model runner: unset VLLM_USE_V2_MODEL_RUNNER")
        sample = rejection_sampler.rejection_sample
        sample = sample._sample if isinstance(sample, VerificationLog) else sample
        self._verifications = VerificationLog(sample, lambda: runner.input_batch.req_ids)
        rejection_sampler.rejection_sample = self._verifications
        self._is_speculating = True
        self._propose = runner.propose_draft_token_ids
        runner.propose_draft_token_ids = self._propose_or_not

    def rollout_start(
        self, seed: int, is_speculating: bool, recorded: Collection[str], evident: Collection[str]
    ) -> None:
        """Before a call: the same seed on all workers, for they draw the same tokens; and whose rounds are kept."""
        torch.manual_seed(seed)
        self._is_speculating = is_speculating
        self._remembered = set(cache.cached_requests) if (cache := self._suffix_cache()) is not None else set()
        self._verifications.watch(recorded, evident)

    def rollout_finish(self, is_remembering: bool) -> dict[str, list[Verified]]:
        """After a call: what was kept. Without remembering, a suffix tree forgets the call's responses."""
        cache = self._suffix_cache()
        if cache is not None and not is_remembering:
            for request in list(cache.active_requests):
                cache.stop_request(request)
            for request in set(cache.cached_requests) - self._remembered:
                cache.evict_cached_response(request)
        return self._verifications.take()

    def weights_begin(self, part: Part) -> None:
        """Layers take up new weights from now on, each when all of its are there."""
        with self._configured():
            initialize_layerwise_reload(self._module(part))

    def weights_load(self, part: Part, bucket: Sequence[tuple[str, Tensor]]) -> None:
        """Some of the weights; a layer keeps them until its last one is there."""
        with self._configured(), torch.no_grad():
            self._module(part).load_weights(bucket)

    def weights_finish(self, part: Part) -> list[str]:
        """All weights were given; returns the layers that lack some, and keep what they had."""
        module, config = self._module(part), self.vllm_config
        of_the_policy = set(self._module("policy").modules()) if part == "draft" else set()
        lacking = [name for name, layer in module.named_modules() if layer not in of_the_policy and _lacks(layer)]
        model_config = config.model_config if part == "policy" else config.speculative_config.draft_model_config
        with self._configured(), torch.no_grad():
            finalize_layerwise_reload(module, model_config)
        return lacking

    def _module(self, part: Part) -> nn.Module:
        return self.model_runner.get_model() if part == "policy" else draft_model_of(self.model_runner)

    def _configured(self) -> Any:
        return set_current_vllm_config(self.vllm_config)

    def _suffix_cache(self) -> Any:
        return getattr(getattr(self.model_runner, "drafter", None), "suffix_cache", None)

    def _propose_or_not(self, scheduler_output: Any, sampled_token_ids: Any, *arguments: Any, **named: Any) -> Any:
        """No draft, and nothing spent on one, in a call that does not speculate, nor where lookups are not worth it."""
        number = scheduler_output.num_spec_tokens_to_schedule
        if not isinstance(sampled_token_ids, list):
            if self._is_speculating:
                return self._propose(scheduler_output, sampled_token_ids, *arguments, **named)
            return torch.empty(len(sampled_token_ids), 0, dtype=torch.int64, device=sampled_token_ids.device)
        is_suffix = self._suffix_cache() is not None
        if not self._is_speculating or (not number and not is_suffix):
            return [[] for _ in sampled_token_ids]
        if is_suffix:  # it must hear of every token, and takes no other length
            scheduler_output.num_spec_tokens_to_schedule = self.model_runner.num_spec_tokens
        with LOOKUP_CLOCK.measuring():
            drafts = self._propose(scheduler_output, sampled_token_ids, *arguments, **named)
        return [draft[:number] for draft in drafts]


def _lacks(layer: nn.Module) -> bool:
    """Whether a layer still waits for weights. Vocabularies are padded, so that theirs are never all there."""
    info = get_layerwise_info(layer)
    if not info.can_load() or not any(True for _ in layer.parameters(recurse=False)):
        return False
    return not info.load_numel or (
        info.load_numel < info.load_numel_total and not isinstance(layer, VocabParallelEmbedding)
    )
