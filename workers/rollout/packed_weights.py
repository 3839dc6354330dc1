"""Weights as inference wants them: fused, folded and reordered for the processor. Made anew at every weight sync."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.eagle3 import EagleConfig
from workers.rollout.graphs import StaticOperations
from workers.rollout.native.operations import NativeOperations, pack_gated_product, pack_product
from workers.rollout.operations import Linear, Operations, PackedLayer
from workers.rollout.torch_operations import TorchOperations

# oneDNN picks the packed layout for about this many rows; what it picks serves fewer and more rows well.
_TYPICAL_NUM_ROWS = 64


def pack_linear(weight_OI: Tensor, dtype: torch.dtype) -> Linear:
    """x -> x @ weight^T in `dtype`, on a copy of the weight.

    bfloat16 on a processor goes to its matrix tiles by a kernel of our own, which takes a fifth of the time for the few
    rows of a decoding pass; else to oneDNN with a weight reordered once, which spares a reordering at every call.
    float32 and other devices, and builds of torch without oneDNN, use torch's own product.
    """
    is_packed = weight_OI.device.type == "cpu" and dtype == torch.bfloat16
    if is_packed and (product := pack_product(weight_OI)) is not None:
        return product
    weight = weight_OI.detach().to(dtype, copy=True).contiguous()
    if is_packed and _has_onednn_bfloat16():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_NUM_ROWS)
        product = torch.ops.mkldnn._linear_pointwise.default
        return lambda x: product(x, packed, None, "none", [], "")
    return TorchProduct(weight)


@dataclass(frozen=True, slots=True)
class TorchProduct:
    """x -> x @ weight^T by torch's own product."""

    weight_OI: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight_OI)


@dataclass(frozen=True, slots=True)
class GatedProduct:
    """x -> silu(x @ gate^T) * (x @ up^T), from one product with both."""

    both: Linear

    def __call__(self, x: Tensor) -> Tensor:
        gate, up = self.both(x).chunk(2, dim=-1)
        return F.silu(gate).mul_(up)


def pack_gated(gate_OI: Tensor, up_OI: Tensor, dtype: torch.dtype) -> Linear:
    """x -> silu(x @ gate^T) * (x @ up^T) in `dtype`, on a copy of the weights."""
    if gate_OI.device.type == "cpu" and dtype == torch.bfloat16:
        product = pack_gated_product(gate_OI, up_OI)
        if product is not None:
            return product
    return GatedProduct(pack_linear(torch.cat([gate_OI, up_OI]), dtype))


def _has_onednn_bfloat16() -> bool:
    operators = torch.ops.mkldnn
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(operators, "_linear_pointwise")
        and hasattr(operators, "_reorder_linear_weight")
        and bool(operators._is_mkldnn_bf16_supported())
    )


@dataclass(frozen=True, slots=True)
class PackedPolicy:
    """The policy."""

    config: ModelConfig
    dtype: torch.dtype
    operations: Operations
    embedding_VD: Tensor
    layers: tuple[PackedLayer, ...]
    head: Linear
    """The final norm is folded into it."""

    @classmethod
    def pack(cls, state: Mapping[str, Tensor], config: ModelConfig, dtype: torch.dtype) -> "PackedPolicy":
        """From Hugging Face names. Raises ValueError naming the first tensor that is missing or misshapen."""
        weights = Weights(state, "policy")
        v, d = config.vocab_size, config.hidden_size
        embedding = weights.take("model.embed_tokens.weight", v, d)
        head = embedding if config.tie_word_embeddings else weights.take("lm_head.weight", v, d)
        final_norm = weights.take("model.norm.weight", d)
        layers = tuple(
            pack_policy_layer(weights, f"model.layers.{index}.", config, dtype)
            for index in range(config.num_hidden_layers)
        )
        operations = choose_operations(config, dtype, embedding.device)
        return cls(
            config, dtype, operations, embedding.to(dtype, copy=True), layers, pack_linear(head * final_norm, dtype)
        )

    def operations_for(self, draft: ModelConfig) -> Operations:
        """What computes a draft of this shape: graphs share what the policy's hold, where their eps is the same."""
        if self.operations.is_static and draft.rms_norm_eps == self.config.rms_norm_eps:
            return self.operations
        return choose_operations(draft, self.dtype, self.embedding_VD.device)


def choose_operations(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> Operations:
    """Compiled kernels where they fit, graphs where there are any, else PyTorch."""
    if device.type == "cuda":
        return StaticOperations(config.rms_norm_eps, dtype, device)
    return NativeOperations.find(config, dtype, device) or TorchOperations(config.rms_norm_eps, dtype, device)


@dataclass(frozen=True, slots=True)
class PackedDraft:
    """The EAGLE-3 head."""

    config: EagleConfig
    dtype: torch.dtype
    fuse: Linear
    normed_embedding_VD: Tensor
    """Every token's embedding after input_layernorm, which depends on nothing else."""
    entry_norm_D: Tensor | None
    """float32 weight of the norm through which the residual stream starts, where there is one; in qkv it is folded."""
    layer: PackedLayer
    head: Linear
    vocabulary_V: Tensor | None
    """int64: the tokens that the head's outputs stand for, where they are not all."""

    @classmethod
    def pack(cls, state: Mapping[str, Tensor], config: EagleConfig, dtype: torch.dtype) -> "PackedDraft":
        """From Eagle3Head's names. Raises ValueError naming the first tensor that is missing or misshapen."""
        weights = Weights(state, "draft head")
        model = config.shape
        v, d = model.vocab_size, model.hidden_size
        embedding = weights.take("embed_tokens.weight", v, d).float()
        input_norm = weights.take("midlayer.input_layernorm.weight", d)
        hidden_norm = weights.take("midlayer.hidden_norm.weight", d)
        qkv = weights.take_qkv("midlayer.self_attn.", model, 2 * d)
        # The first half of the input is the normed embedding, the second the feature.
        qkv = torch.cat([qkv[:, :d], qkv[:, d:] * hidden_norm], dim=1)
        qkv[: model.num_attention_heads * model.head_dim] *= model.head_dim**-0.5
        size = config.draft_vocab_size
        head = weights.take("lm_head.weight", size or v, d) * weights.take("norm.weight", d)
        vocabulary_V = None
        if size is not None:
            vocabulary_V = weights.take("d2t", size) + torch.arange(size, device=embedding.device)
        return cls(
            config,
            dtype,
            pack_linear(weights.take("fc.weight", d, len(config.tap_layers) * config.policy.hidden_size), dtype),
            F.rms_norm(embedding, (d,), input_norm.float(), model.rms_norm_eps).to(dtype),
            hidden_norm.to(torch.float32, copy=True) if config.norm_before_residual else None,
            _pack_layer(weights, "midlayer.", model, qkv, None, dtype),
            pack_linear(head, dtype),
            vocabulary_V,
        )


def pack_policy_layer(weights: "Weights", prefix: str, config: ModelConfig, dtype: torch.dtype) -> PackedLayer:
    e = config.head_dim
    input_norm = weights.take(f"{prefix}input_layernorm.weight", config.hidden_size)
    qkv = weights.take_qkv(f"{prefix}self_attn.", config, config.hidden_size) * input_norm
    q_norm = weights.take(f"{prefix}self_attn.q_norm.weight", e).float() * e**-0.5
    k_norm = weights.take(f"{prefix}self_attn.k_norm.weight", e).float()
    qk_norm = torch.cat(
        [q_norm.expand(config.num_attention_heads, -1), k_norm.expand(config.num_key_value_heads, -1)]
    ).contiguous()
    return _pack_layer(weights, prefix, config, qkv, qk_norm, dtype)


def _pack_layer(
    weights: "Weights", prefix: str, config: ModelConfig, qkv: Tensor, qk_norm: Tensor | None, dtype: torch.dtype
) -> PackedLayer:
    d, m, e = config.hidden_size, config.intermediate_size, config.head_dim
    mlp_norm = weights.take(f"{prefix}post_attention_layernorm.weight", d)
    gate, up = (weights.take(f"{prefix}mlp.{part}_proj.weight", m, d) * mlp_norm for part in ("gate", "up"))
    return PackedLayer(
        qkv=pack_linear(qkv, dtype),
        qk_norm_HE=qk_norm,
        output=pack_linear(weights.take(f"{prefix}self_attn.o_proj.weight", d, config.num_attention_heads * e), dtype),
        gated=pack_gated(gate, up, dtype),
        down=pack_linear(weights.take(f"{prefix}mlp.down_proj.weight", d, m), dtype),
    )


@dataclass(frozen=True, slots=True)
class Weights:
    """A state dict whose tensors are checked as they are taken."""

    state: Mapping[str, Tensor]
    owner: str

    def take(self, name: str, *shape: int) -> Tensor:
        if name not in self.state:
            raise ValueError(f"{name} is missing from the {self.owner}'s weights")
        tensor = self.state[name].detach()
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{name} has shape {list(tensor.shape)}, but the {self.owner} needs {list(shape)}")
        return tensor

    def take_qkv(self, prefix: str, config: ModelConfig, num_inputs: int) -> Tensor:
        """Query, key and value projections, stacked."""
        heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads, "v": config.num_key_value_heads}
        return torch.cat(
            [self.take(f"{prefix}{part}_proj.weight", n * config.head_dim, num_inputs) for part, n in heads.items()]
        )
