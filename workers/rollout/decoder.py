"""The forward pass of generation: a few new tokens of every row against the cache.

Shape suffixes: R rows, N new tokens a row, S span of positions read, D hidden size, I input of a projection, H query
heads, K key and value heads, G = H / K query heads a key head, Q = G * N, E head dimension, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.layers import rotary_tables
from workers.rollout.kv_cache import KvCache
from workers.rollout.packed_weights import PackedLayer, PackedPolicy


@dataclass(frozen=True, slots=True)
class RotaryTable:
    """cos and sin by position, the sign of the rotated half folded into sin."""

    cos_TE: Tensor
    signed_sin_TE: Tensor

    @classmethod
    def build(cls, num_positions: int, config: ModelConfig, device: torch.device) -> "RotaryTable":
        cos, sin = rotary_tables(num_positions, config.head_dim, config.rope_theta, device)
        first, second = sin.chunk(2, dim=-1)
        return cls(cos, torch.cat([-first, second], dim=-1))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where new tokens stand; the same for every layer."""

    positions_RN: Tensor
    rows_R1: Tensor
    cos_RN1E: Tensor
    signed_sin_RN1E: Tensor

    @classmethod
    def of(cls, positions_RN: Tensor, rotary: RotaryTable) -> "Placement":
        return cls(
            positions_RN,
            torch.arange(len(positions_RN), device=positions_RN.device).unsqueeze(1),
            rotary.cos_TE[positions_RN].unsqueeze(2),
            rotary.signed_sin_TE[positions_RN].unsqueeze(2),
        )

    def column(self, index: int) -> "Placement":
        """One new token of every row."""
        at = slice(index, index + 1)
        return Placement(self.positions_RN[:, at], self.rows_R1, self.cos_RN1E[:, at], self.signed_sin_RN1E[:, at])


def causal_bias(positions_RN: Tensor, span: int, num_groups: int) -> Tensor:
    """What is added to scores, [R, 1, Q, S]: 0 up to the query's position, -inf after it."""
    num_rows, num_new = positions_RN.shape
    is_after_RNS = torch.arange(span, device=positions_RN.device) > positions_RN.unsqueeze(2)
    bias_RNS = torch.zeros(is_after_RNS.shape, device=positions_RN.device).masked_fill_(is_after_RNS, float("-inf"))
    return bias_RNS.unsqueeze(1).expand(-1, num_groups, -1, -1).reshape(num_rows, 1, num_groups * num_new, span)


def policy_forward(
    policy: PackedPolicy,
    token_ids_RN: Tensor,
    positions_RN: Tensor,
    span: int,
    cache: KvCache,
    rotary: RotaryTable,
    tap_layers: Sequence[int] = (),
) -> tuple[Tensor, Tensor | None]:
    """Hidden states [R, N, D] before the final norm, and the tapped layers' outputs [R, N, F] where any is asked for.

    span: at least one more than the largest position.
    """
    config = policy.config
    placement = Placement.of(positions_RN, rotary)
    bias_R1QS = causal_bias(positions_RN, span, config.num_attention_heads // config.num_key_value_heads)
    x = F.embedding(token_ids_RN, policy.embedding_VD)
    taps: dict[int, Tensor] = {}
    for index, layer in enumerate(policy.layers):
        q, k, v = project(layer, rms_norm(x, config.rms_norm_eps), config, placement)
        cache.write(index, placement.positions_RN, placement.rows_R1, k, v)
        x = finish_layer(layer, x, attend(q, bias_R1QS, cache, index), config.rms_norm_eps)
        if index in tap_layers:
            taps[index] = x
    return x, torch.cat([taps[index] for index in tap_layers], dim=-1) if tap_layers else None


def rms_norm(x: Tensor, eps: float) -> Tensor:
    """Without a weight: that is folded into what follows."""
    return F.rms_norm(x, x.shape[-1:], None, eps)


def project(layer: PackedLayer, x_RNI: Tensor, config: ModelConfig, placement: Placement) -> tuple[Tensor, ...]:
    """Rotated and scaled queries, rotated keys, and values, float32 [R, N, heads, E]."""
    num_queries = config.num_attention_heads
    num_rotated = num_queries + config.num_key_value_heads
    heads = layer.qkv(x_RNI).float().unflatten(-1, (-1, config.head_dim))
    rotated = heads[:, :, :num_rotated]
    if layer.qk_norm_HE is not None:
        rotated = rms_norm(rotated, config.rms_norm_eps).mul_(layer.qk_norm_HE)
    half_turned = rotated.roll(config.head_dim // 2, -1).mul_(placement.signed_sin_RN1E)
    rotated = (rotated * placement.cos_RN1E).add_(half_turned)
    return rotated[:, :, :num_queries], rotated[:, :, num_queries:], heads[:, :, num_rotated:]


def attend(q_RNHE: Tensor, bias_R1QS: Tensor, cache: KvCache, layer: int) -> Tensor:
    """softmax(q k^T + bias) v over the cache's first S positions; float32 [R, N, H * E]."""
    num_rows, num_new, num_heads, head_dim = q_RNHE.shape
    keys, values = cache.read(layer, num_rows, bias_R1QS.shape[-1])
    num_key_heads = len(keys) // num_rows
    groups = num_heads // num_key_heads
    # Query heads that share a key head become further queries of it, so nothing is repeated.
    q = q_RNHE.unflatten(2, (num_key_heads, groups)).permute(0, 2, 3, 1, 4)
    q = q.reshape(num_rows * num_key_heads, groups * num_new, head_dim)
    scores = torch.bmm(q, keys).unflatten(0, (num_rows, num_key_heads))
    weights = scores.add_(bias_R1QS).softmax(-1)
    mixed = torch.bmm(weights.flatten(0, 1), values).view(num_rows, num_key_heads, groups, num_new, head_dim)
    return mixed.permute(0, 3, 1, 2, 4).reshape(num_rows, num_new, num_heads * head_dim)


def finish_layer(layer: PackedLayer, x: Tensor, mixed: Tensor, eps: float) -> Tensor:
    """Output projection and feed-forward block, each added to the residual stream."""
    x = x + layer.output(mixed.to(x.dtype))
    gate, up = layer.gate_up(rms_norm(x, eps)).chunk(2, dim=-1)
    return x + layer.down(F.silu(gate).mul_(up))
