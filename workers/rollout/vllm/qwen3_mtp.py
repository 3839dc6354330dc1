"""A multi-token prediction module with a dense Qwen3 layer, as workers.model.mtp trains it, for vLLM to draft with.

vLLM has such modules for other families only. Weights are named as in workers.model.draft_checkpoint, with or without
`mtp.`; embedding and head are the policy's, which vLLM puts in place.

Shape suffixes: T tokens, D hidden size, V vocabulary.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.logits_processor import LogitsProcessor
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding
from vllm.model_executor.model_loader.weight_utils import default_weight_loader
from vllm.model_executor.models.qwen3 import Qwen3DecoderLayer

_PREFIX = "mtp."
_OF_THE_POLICY = ("embed_tokens.weight", "lm_head.weight", "policy_norm.weight")
"""The first two are shared; the last is folded into the hidden states, which come normed."""
_FUSED = (
    ("q_proj", "qkv_proj", "q"),
    ("k_proj", "qkv_proj", "k"),
    ("v_proj", "qkv_proj", "v"),
    ("gate_proj", "gate_up_proj", 0),
    ("up_proj", "gate_up_proj", 1),
)


class Qwen3MtpModule(nn.Module):
    """Embedding, norms, joining layer and the one decoder layer."""

    def __init__(self, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        config = _draft_config(vllm_config).hf_config
        width, eps = config.hidden_size, config.rms_norm_eps
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, width)
        self.pre_fc_norm_embedding = RMSNorm(width, eps=eps)
        self.pre_fc_norm_hidden = RMSNorm(width, eps=eps)
        self.fc = ReplicatedLinear(2 * width, width, bias=False, return_bias=False, prefix=f"{prefix}.fc")
        # Numbered after the policy's layers: vLLM tells KV caches apart by the number.
        first = vllm_config.model_config.get_total_num_hidden_layers()
        layer = Qwen3DecoderLayer(config, cache_config=vllm_config.cache_config, prefix=f"{prefix}.layers.{first}")
        self.layers = nn.ModuleList([layer])
        self.norm = RMSNorm(width, eps=eps)

    def forward(self, positions: Tensor, hidden_TD: Tensor, embedded_TD: Tensor) -> Tensor:
        """[T, D]: what the head scores, and what the next draft step reads in the place of the hidden states."""
        joined = torch.cat([self.pre_fc_norm_embedding(embedded_TD), self.pre_fc_norm_hidden(hidden_TD)], dim=-1)
        hidden, residual = self.layers[0](positions=positions, hidden_states=self.fc(joined), residual=None)
        return self.norm(hidden, residual)[0]


class Qwen3MTP(nn.Module):
    """What vLLM loads for the architecture of this name."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        self.config = _draft_config(vllm_config).hf_config
        self.model = Qwen3MtpModule(vllm_config, f"{prefix}.mtp" if prefix else "mtp")
        self.lm_head = ParallelLMHead(self.config.vocab_size, self.config.hidden_size)
        self.logits_processor = LogitsProcessor(self.config.vocab_size)

    def embed_input_ids(self, input_ids: Tensor, *_: Any, **__: Any) -> Tensor:
        """[T, D]."""
        return self.model.embed_tokens(input_ids)

    def forward(
        self,
        input_ids: Tensor | None,
        positions: Tensor,
        hidden_states: Tensor,
        intermediate_tensors: object = None,
        inputs_embeds: Tensor | None = None,
        **_: object,
    ) -> Tensor:
        """[T, D]."""
        if inputs_embeds is None:
            assert input_ids is not None
            inputs_embeds = self.embed_input_ids(input_ids)
        return self.model(positions, hidden_states, inputs_embeds)

    def compute_logits(self, hidden_states: Tensor, *_: Any, **__: Any) -> Tensor | None:
        """[T, V]."""
        return self.logits_processor(self.lm_head, hidden_states)

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Returns the names of the parameters that were loaded, wholly or in part."""
        parameters = dict(self.named_parameters())
        loaded = set()
        for name, tensor in weights:
            own = name.removeprefix(_PREFIX)
            if own.endswith(_OF_THE_POLICY):
                continue
            own, shard = _fused(f"model.{own}")
            parameter = parameters[own]
            load = getattr(parameter, "weight_loader", default_weight_loader)
            if shard is None:
                load(parameter, tensor)
            else:
                load(parameter, tensor, shard)
            loaded.add(own)
        return loaded


def _fused(name: str) -> tuple[str, str | int | None]:
    """(the parameter that holds a checkpoint's tensor, which part of it)."""
    for part, whole, shard in _FUSED:
        if f".{part}." in name:
            return name.replace(f".{part}.", f".{whole}."), shard
    return name, None


def _draft_config(vllm_config: VllmConfig) -> Any:
    assert vllm_config.speculative_config is not None
    return vllm_config.speculative_config.draft_model_config
