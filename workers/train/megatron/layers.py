"""The layers that Megatron-core builds the policy of.

With Transformer Engine they are its own, as in Megatron's training on GPUs. Without it they are Megatron-core's local
ones, save two that only run on GPUs or only without sequence parallelism, and whose places are taken here.

Shape suffixes: T positions, B sequences, N tokens of packed sequences, H query heads, K key and value heads, E head
dimension.
"""

import copy
import importlib.util
import itertools
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.extensions.transformer_engine import TENorm
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_layer_local_spec,
    get_gpt_layer_with_transformer_engine_spec,
)
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor

from workers.train.megatron import processors


def has_transformer_engine() -> bool:
    """Whether layers are Transformer Engine's; they were never run by this project."""
    return processors.has_gpu() and importlib.util.find_spec("transformer_engine") is not None


class RmsNorm(torch.nn.Module):
    """See workers.model.layers.RMSNorm; its gradient is added up over the ranks that the sequence is cut over."""

    def __init__(self, config: TransformerConfig, hidden_size: int, eps: float = 1e-6, **_: Any) -> None:
        super().__init__()
        self.eps = eps
        weight = torch.ones(hidden_size, dtype=config.params_dtype, device=processors.device())
        self.weight = torch.nn.Parameter(weight)
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class CausalAttention(MegatronModule):
    """softmax(q k^T / sqrt(E)) v over earlier tokens of the same sequence, by PyTorch's fused kernels."""

    def __init__(self, config: TransformerConfig, *_: Any, softmax_scale: float | None = None, **__: Any) -> None:
        super().__init__(config=config)
        self._scale = softmax_scale

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        packed_seq_params: PackedSeqParams | None = None,
        **_: Any,
    ) -> Tensor:
        """query [T, B, H, E], key and value [T, B, K, E], or without B where sequences are packed; [T, B, H * E]."""
        if packed_seq_params is not None:
            return self._packed(query, key, value, packed_seq_params)
        mixed_BHTE = self._attend(*(x.permute(1, 2, 0, 3) for x in (query, key, value)))
        return mixed_BHTE.permute(2, 0, 1, 3).flatten(2)

    def _packed(self, query: Tensor, key: Tensor, value: Tensor, packing: PackedSeqParams) -> Tensor:
        ends = packing.cu_seqlens_q.tolist()
        parts = [
            self._attend(*(x[start:end].transpose(0, 1).unsqueeze(0) for x in (query, key, value)))
            for start, end in itertools.pairwise(ends)
        ]
        return torch.cat(parts, dim=2).squeeze(0).transpose(0, 1).flatten(1)

    def _attend(self, query_BHTE: Tensor, key_BKTE: Tensor, value_BKTE: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(
            query_BHTE, key_BKTE, value_BKTE, is_causal=True, scale=self._scale, enable_gqa=True
        )


def block(config: TransformerConfig) -> TransformerBlockSubmodules:
    """The layers of this rank's stage."""
    spec = _engine_layer(config) if has_transformer_engine() else _local_layer(config)
    norm: Any = RmsNorm
    if has_transformer_engine():
        norm = TENorm
    return TransformerBlockSubmodules(layer_specs=[spec] * get_num_layers_to_build(config), layer_norm=norm)


def _engine_layer(config: TransformerConfig) -> Any:
    """Never run by this project: written from Megatron-core's sources."""
    return get_gpt_layer_with_transformer_engine_spec(
        num_experts=config.num_moe_experts, moe_grouped_gemm=config.moe_grouped_gemm, qk_layernorm=True
    )


def _local_layer(config: TransformerConfig) -> Any:
    spec = get_gpt_layer_local_spec(
        num_experts=config.num_moe_experts, moe_grouped_gemm=False, qk_layernorm=True, normalization="RMSNorm"
    )
    spec = copy.deepcopy(spec)
    layer = spec.submodules
    layer.input_layernorm = layer.pre_mlp_layernorm = RmsNorm
    attention = layer.self_attention.submodules
    attention.q_layernorm = attention.k_layernorm = RmsNorm
    attention.core_attention = CausalAttention
    return spec
