"""The policy: a Qwen3-family dense transformer, as trained. Parameter names are those of a Hugging Face checkpoint.

Shape suffixes: B sequences, T positions, V vocabulary, D hidden size, F features (taps * D), H query heads,
K key and value heads, E head dimension.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.model.config import ModelConfig
from workers.model.layers import RMSNorm, SwiGlu, rotary_tables, rotate, split_heads


class PolicyOutput(NamedTuple):
    """What one forward pass gives."""

    logits_BTV: Tensor
    """Row t scores the token at t + 1. bfloat16 under autocast, else float32."""
    features_BTF: Tensor | None
    """Hidden states after the tapped layers, side by side in the order asked for; None when none was."""


class Attention(nn.Module):
    """Causal grouped-query attention with RMS-normed queries and keys (Qwen3 report, arXiv:2505.09388, section 2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        d, e = config.hidden_size, config.head_dim
        self.head_dim = e
        self.q_proj = nn.Linear(d, config.num_attention_heads * e, bias=False)
        self.k_proj = nn.Linear(d, config.num_key_value_heads * e, bias=False)
        self.v_proj = nn.Linear(d, config.num_key_value_heads * e, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * e, d, bias=False)
        self.q_norm = RMSNorm(e, config.rms_norm_eps)
        self.k_norm = RMSNorm(e, config.rms_norm_eps)

    def project(self, x_BTD: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Normed and rotated queries [B, H, T, E], normed and rotated keys, and values, both [B, K, T, E]."""
        q_BHTE = self.q_norm(split_heads(self.q_proj(x_BTD), self.head_dim)).transpose(1, 2)
        k_BKTE = self.k_norm(split_heads(self.k_proj(x_BTD), self.head_dim)).transpose(1, 2)
        v_BKTE = split_heads(self.v_proj(x_BTD), self.head_dim).transpose(1, 2)
        return rotate(q_BHTE, cos_TE, sin_TE), rotate(k_BKTE, cos_TE, sin_TE), v_BKTE

    def forward(self, x_BTD: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
        q_BHTE, k_BKTE, v_BKTE = self.project(x_BTD, cos_TE, sin_TE)
        mixed_BHTE = F.scaled_dot_product_attention(q_BHTE, k_BKTE, v_BKTE, is_causal=True, enable_gqa=True)
        return self.o_proj(mixed_BHTE.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = SwiGlu(config.hidden_size, config.intermediate_size)

    def forward(self, x_BTD: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), cos_TE, sin_TE)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class Decoder(nn.Module):
    """Embedding, layers and final norm: what a checkpoint keeps under `model.`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Qwen3Policy(nn.Module):
    """The whole policy. With tied embeddings there is no lm_head of its own, as in the checkpoint."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = (
            None if config.tie_word_embeddings else nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        )

    def forward(self, token_ids_BT: Tensor, tap_layers: Sequence[int] = ()) -> PolicyOutput:
        """Score every next token; right padding needs no mask, for attention is causal.

        token_ids_BT: int64. tap_layers: indices of layers whose output joins the features. Gradient flows through both
        results: detach the features before they train a draft head.
        """
        cos_TE, sin_TE = rotary_tables(
            token_ids_BT.shape[1], self.config.head_dim, self.config.rope_theta, token_ids_BT.device
        )
        x_BTD = self.model.embed_tokens(token_ids_BT)
        taps: dict[int, Tensor] = {}
        for index, layer in enumerate(self.model.layers):
            x_BTD = layer(x_BTD, cos_TE, sin_TE)
            if index in tap_layers:
                taps[index] = x_BTD
        features = torch.cat([taps[index] for index in tap_layers], dim=-1) if tap_layers else None
        return PolicyOutput(F.linear(self.model.norm(x_BTD), self.head_weight), features)

    @property
    def head_weight(self) -> Tensor:
        """[V, D], the embedding's where they are tied."""
        return self.model.embed_tokens.weight if self.lm_head is None else self.lm_head.weight

    @torch.no_grad()
    def initialize(self, seed: int) -> None:
        """Draw initial weights: normal, 0.02 for embedding and head, 1 / sqrt(3 fan-in) inside the layers, where what
        writes to the residual stream gets 0.02 / sqrt(2 layers) (Radford et al. 2019, GPT-2, section 2.3)."""
        generator = torch.Generator(device=self.head_weight.device).manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=self._initial_std(name, parameter), generator=generator)
            else:
                parameter.fill_(1.0)

    def _initial_std(self, name: str, parameter: Tensor) -> float:
        if "layers" not in name:
            return 0.02
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            return 0.02 / math.sqrt(2 * self.config.num_hidden_layers)
        return 1 / math.sqrt(3 * parameter.shape[1])
