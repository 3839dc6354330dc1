"""The operations of generation in PyTorch, for any device; see workers.rollout.operations.

Shape suffixes as there; S span of positions read, G = H / K query heads a key head, Q = G * N.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from workers.algo.acceptance import Randomness, draw
from workers.algo.sampling import sampling_probs
from workers.model.config import ModelConfig
from workers.model.layers import rotary_tables
from workers.rollout.operations import Operations, Packing


@dataclass(frozen=True, slots=True)
class Placement:
    """Where new tokens stand."""

    positions_RN: Tensor
    rows_R1: Tensor
    cos_RN1E: Tensor
    signed_sin_RN1E: Tensor
    """With the sign of the rotated half folded in."""
    span: int
    bias_R1QS: Tensor | None
    """What is added to scores: 0 up to the query's position, -inf after it. None where every row begins and is as long
    as the span: it then holds nothing but the new tokens."""


class TorchKvCache:
    """On a processor in float32: plain batched products in it beat bfloat16 attention for the few new tokens of a
    decoding pass. is_fused, in the precision of products: half as much to read, by torch's fused attention."""

    def __init__(
        self,
        config: ModelConfig,
        num_layers: int,
        num_rows: int,
        capacity: int,
        *,
        transpose_keys: bool,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        is_fused: bool = False,
    ) -> None:
        """transpose_keys: keep a channel's positions side by side in memory. Scores of several new tokens a row then
        take about half the time, while writing keys takes longer, which does not pay for a single new token."""
        heads, e = config.num_key_value_heads, config.head_dim
        self.num_layers, self.num_rows, self.capacity = num_layers, num_rows, capacity
        self.dtype, self.is_fused = dtype, is_fused

        def keys() -> Tensor:
            if transpose_keys:
                return torch.zeros(num_rows, heads, e, capacity, dtype=dtype, device=device).permute(0, 3, 1, 2)
            return values()

        def values() -> Tensor:
            return torch.zeros(num_rows, heads, capacity, e, dtype=dtype, device=device).transpose(1, 2)

        # Indexed [row, position, head, channel] whatever their order in memory.
        self.keys = tuple(keys() for _ in range(num_layers))
        self.values = tuple(values() for _ in range(num_layers))
        self.config = config
        self.cos_TE, sin_TE = rotary_tables(capacity, e, config.rope_theta, device)
        first, second = sin_TE.chunk(2, dim=-1)
        self.signed_sin_TE = torch.cat([-first, second], dim=-1)

    def place(self, start_R: Tensor, num_new: int, span: int, *, packing: Packing | None = None) -> Placement:
        assert packing is None, "these operations do not pack"
        device = start_R.device
        positions_RN = start_R.unsqueeze(1) + torch.arange(num_new, device=device)
        return Placement(
            positions_RN,
            torch.arange(len(start_R), device=device).unsqueeze(1),
            self.cos_TE[positions_RN].unsqueeze(2),
            self.signed_sin_TE[positions_RN].unsqueeze(2),
            span,
            None if self.is_fused and num_new == span else self._bias(positions_RN, span),
        )

    def _bias(self, positions_RN: Tensor, span: int) -> Tensor:
        num_rows, num_new = positions_RN.shape
        groups = self.config.num_attention_heads // self.config.num_key_value_heads
        is_after_RNS = torch.arange(span, device=positions_RN.device) > positions_RN.unsqueeze(2)
        bias_RNS = torch.zeros(is_after_RNS.shape, dtype=self.dtype, device=positions_RN.device)
        bias_RNS.masked_fill_(is_after_RNS, float("-inf"))
        bias_RGNS = bias_RNS.unsqueeze(1).expand(-1, groups, -1, -1)
        return bias_RGNS.reshape(num_rows, 1, groups * num_new, span)

    def write(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> None:
        self._write(layer, *self._turn(qkv_RNW, qk_norm_HE, placement)[1:], placement)

    def attend(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> Tensor:
        q_RNHE, k_RNKE, v_RNKE = self._turn(qkv_RNW, qk_norm_HE, placement)
        self._write(layer, k_RNKE, v_RNKE, placement)
        num_rows, num_new, num_heads, head_dim = q_RNHE.shape
        if placement.bias_R1QS is None:
            mixed = causal_attention(*(x.to(self.dtype) for x in (q_RNHE, k_RNKE, v_RNKE)))
            return mixed.flatten(2).to(qkv_RNW.dtype)
        num_key_heads, span = k_RNKE.shape[2], placement.span
        groups = num_heads // num_key_heads
        keys_RSKE, values_RSKE = (store[layer][:num_rows, :span] for store in (self.keys, self.values))
        # Query heads that share a key head become further queries of it, so nothing is repeated.
        q = q_RNHE.unflatten(2, (num_key_heads, groups)).permute(0, 2, 3, 1, 4)
        q_RKQE = q.reshape(num_rows, num_key_heads, groups * num_new, head_dim)
        mixed_RKQE = (fused_attention if self.is_fused else attention)(
            q_RKQE.to(self.dtype), keys_RSKE, values_RSKE, placement.bias_R1QS
        )
        mixed = mixed_RKQE.unflatten(2, (groups, num_new)).permute(0, 3, 1, 2, 4)
        return mixed.reshape(num_rows, num_new, num_heads * head_dim).to(qkv_RNW.dtype)

    def copy_rows(self, rows: Tensor, source: "TorchKvCache", source_rows: Tensor, length: int) -> None:
        for mine, theirs in zip(self.keys + self.values, source.keys + source.values, strict=True):
            mine[rows, :length] = theirs[source_rows, :length]

    def move_row(self, source: int, target: int) -> None:
        for tensor in self.keys + self.values:
            tensor[target] = tensor[source]

    def clear(self) -> None:
        """Forget everything, also what may not be finite."""
        for tensor in self.keys + self.values:
            tensor.zero_()

    def _turn(self, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> tuple[Tensor, ...]:
        """Normed and rotated queries and keys, and values, float32 [R, N, heads, E]."""
        num_queries = self.config.num_attention_heads
        num_rotated = num_queries + self.config.num_key_value_heads
        heads = qkv_RNW.float().unflatten(-1, (-1, self.config.head_dim))
        rotated = heads[:, :, :num_rotated]
        if qk_norm_HE is not None:
            rotated = F.rms_norm(rotated, rotated.shape[-1:], None, self.config.rms_norm_eps).mul_(qk_norm_HE)
        half_turned = rotated.roll(self.config.head_dim // 2, -1).mul_(placement.signed_sin_RN1E)
        rotated = (rotated * placement.cos_RN1E).add_(half_turned)
        return rotated[:, :, :num_queries], rotated[:, :, num_queries:], heads[:, :, num_rotated:]

    def _write(self, layer: int, k_RNKE: Tensor, v_RNKE: Tensor, placement: Placement) -> None:
        at = (placement.rows_R1, placement.positions_RN)
        self.keys[layer].index_put_(at, k_RNKE.to(self.dtype))
        self.values[layer].index_put_(at, v_RNKE.to(self.dtype))


def attention(q_RKQE: Tensor, keys_RSKE: Tensor, values_RSKE: Tensor, bias_R1QS: Tensor) -> Tensor:
    """softmax(q k^T + bias) v, [R, K, Q, E]."""
    keys, values = keys_RSKE.permute(0, 2, 3, 1).flatten(0, 1), values_RSKE.transpose(1, 2).flatten(0, 1)
    scores = torch.bmm(q_RKQE.flatten(0, 1), keys).unflatten(0, q_RKQE.shape[:2])
    weights = scores.add_(bias_R1QS).softmax(-1)
    return torch.bmm(weights.flatten(0, 1), values).unflatten(0, q_RKQE.shape[:2])


def fused_attention(q_RKQE: Tensor, keys_RSKE: Tensor, values_RSKE: Tensor, bias_R1QS: Tensor) -> Tensor:
    """The same in one kernel, which keeps scores in float32 whatever the precision of its operands.

    Of torch's backends the memory-efficient one, which takes a mask for every row, else plain products.
    """
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        return F.scaled_dot_product_attention(
            q_RKQE, keys_RSKE.transpose(1, 2), values_RSKE.transpose(1, 2), attn_mask=bias_R1QS, scale=1.0
        )


def causal_attention(q_RNHE: Tensor, keys_RNKE: Tensor, values_RNKE: Tensor) -> Tensor:
    """Of tokens to their own and earlier ones, [R, N, H, E], without a mask, which would be as large as all scores."""
    groups = q_RNHE.shape[2] // keys_RNKE.shape[2]
    keys, values = (x.transpose(1, 2).repeat_interleave(groups, 1) for x in (keys_RNKE, values_RNKE))
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        mixed = F.scaled_dot_product_attention(q_RNHE.transpose(1, 2), keys, values, is_causal=True, scale=1.0)
    return mixed.transpose(1, 2)


class TorchOperations(Operations):
    """On the device and in the precision of the policy's weights."""

    def __init__(self, eps: float, dtype: torch.dtype, device: torch.device) -> None:
        self.eps, self.dtype, self.device = eps, dtype, device

    def allocate_cache(
        self, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> TorchKvCache:
        return TorchKvCache(config, num_layers, num_rows, capacity, transpose_keys=is_verified, device=self.device)

    def enter(self, embedded: Tensor) -> Tensor:
        return embedded.to(self.dtype, copy=True)

    def add_norm(self, x: Tensor, delta: Tensor | None, tap: Tensor | None = None) -> Tensor:
        if delta is not None:
            x += delta
        if tap is not None:
            tap.copy_(x)
        return F.rms_norm(x, x.shape[-1:], None, self.eps)

    def softmax(self, logits: Tensor, temperature: float) -> Tensor:
        return sampling_probs(logits, temperature)

    def draw(self, weights: Tensor, randomness: Randomness) -> Tensor:
        return draw(weights, randomness)
