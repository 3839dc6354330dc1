"""What must be put right in vLLM before its worker is made; see docs/decisions on the vLLM engine.

Shape suffixes: B sequences, N tokens, V vocabulary.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from vllm import ModelRegistry
from vllm.config import SpeculativeConfig
from vllm.platforms import current_platform
from vllm.v1.sample import rejection_sampler
from vllm.v1.spec_decode.llm_base_proposer import SpecDecodeBaseProposer

vllms_expand_batch_to_tokens = rejection_sampler.expand_batch_to_tokens
_platform = type(current_platform)
# Of versions since the one whose build for processors is known.
_vllms_register_kernels = getattr(_platform, "register_triton_kernel_overrides", None)
_vllms_constraints = rejection_sampler.apply_sampling_constraints
_vllms_override = SpeculativeConfig.hf_config_override
_MTP_ARCHITECTURE = "Qwen3MTP"


def mend_vllm() -> None:
    """Put all of it right, once in each process that has a worker."""
    ModelRegistry.register_model(_MTP_ARCHITECTURE, f"{__package__}.qwen3_mtp:{_MTP_ARCHITECTURE}")
    SpeculativeConfig.hf_config_override = staticmethod(known_as_mtp)
    if not torch.cuda.is_available():
        rejection_sampler.expand_batch_to_tokens = expand_batch_to_tokens
        rejection_sampler.apply_sampling_constraints = constrain_drafted
        _platform.register_triton_kernel_overrides = staticmethod(register_kernels_once)
    for name in ("_maybe_share_embeddings", "_maybe_share_lm_head"):
        shared = getattr(SpecDecodeBaseProposer, name)
        if not hasattr(shared, "is_mended"):
            setattr(SpecDecodeBaseProposer, name, _keeping_own(shared, name.removeprefix("_maybe_share_")))


def known_as_mtp(config: Any, *arguments: Any, **named: Any) -> Any:
    """vLLM's change of a draft's configuration, which knows multi-token prediction by a list of families; ours too."""
    if config.architectures[0] == _MTP_ARCHITECTURE:
        config.model_type = "mtp"
        config.update({"n_predict": 1})
        return config
    return _vllms_override(config, *arguments, **named)


def expand_batch_to_tokens(
    x_B: Tensor, cumulative_B: Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0
) -> Tensor:
    """Each sequence's value for each of its draft tokens: [N] with x_b repeated cumulative_b - cumulative_(b-1) times.

    Values equal to replace_from become replace_to. It stands for a kernel of vLLM whose version for processors (0.32)
    computes into a copy and returns uninitialised memory as temperatures, top-k and top-p.
    """
    counts_B = torch.diff(cumulative_B, prepend=cumulative_B.new_zeros(1))
    replaced_B = torch.where(x_B == replace_from, torch.full_like(x_B, replace_to), x_B)
    return replaced_B.repeat_interleave(counts_B.long(), output_size=num_tokens)


@cache
def register_kernels_once() -> None:
    """What stands for Triton's kernels on processors. vLLM looks for them in every module at every engine's start, and
    fails over modules that it has itself compiled by Numba for an engine before."""
    if _vllms_register_kernels is not None:
        _vllms_register_kernels()


def constrain_drafted(logits_NV: Tensor, cumulative_B: Tensor, sampling_metadata: Any) -> Tensor:
    """vLLM's temperature, top-k and top-p for drafted tokens; its top-k on processors fails where there are none, as in
    every step that only reads prompts."""
    return _vllms_constraints(logits_NV, cumulative_B, sampling_metadata) if len(logits_NV) else logits_NV


def _keeping_own(share: Any, part: str) -> Any:
    """vLLM puts the policy's module in the place of a draft's own one where both have equal weights at the start.

    The policy would then move the draft's weights, and what is synced for the draft would overwrite the policy's.
    """
    own = {"embeddings": "has_own_embed_tokens", "lm_head": "has_own_lm_head"}[part]

    def share_unless_own(self: Any, target: Any) -> None:
        if not getattr(self.model, own, False):
            share(self, target)

    share_unless_own.is_mended = True  # type: ignore[attr-defined]
    return share_unless_own
