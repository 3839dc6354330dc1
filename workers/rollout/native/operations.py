"""The operations of generation by the compiled kernels, for bfloat16 on a processor; see workers.rollout.operations."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.layers import rotary_tables
from workers.rollout.native.library import load

_LANES = 16
_TILE = 32
"""Positions in whose multiples a cache has room."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where new tokens stand."""

    start_R: Tensor
    num_new: int


class NativeKvCache:
    """In bfloat16; keys and values lie in tiles, as matrix tiles and vectors want them; kernels.c says how."""

    def __init__(
        self, library: ctypes.CDLL, config: ModelConfig, num_layers: int, num_rows: int, capacity: int
    ) -> None:
        heads, e = config.num_key_value_heads, config.head_dim
        num_tiles = -(-capacity // _TILE)
        self.capacity = num_tiles * _TILE
        shape = (num_rows, heads, num_tiles, _TILE * e)
        self.keys = [torch.zeros(shape, dtype=torch.bfloat16) for _ in range(num_layers)]
        self.values = [torch.zeros(shape, dtype=torch.bfloat16) for _ in range(num_layers)]
        self.cos_TE, self.sin_TE = rotary_tables(self.capacity, e, config.rope_theta, torch.device("cpu"))
        self.num_heads, self.num_key_heads, self.head_dim = config.num_attention_heads, heads, e
        self.eps = config.rms_norm_eps
        self._attend = library.attend
        self.scratch = torch.empty(library.attend_scratch_bytes(e, self.capacity), dtype=torch.uint8)
        self._addresses = [(k.data_ptr(), v.data_ptr()) for k, v in zip(self.keys, self.values, strict=True)]
        self._tables = (self.cos_TE.data_ptr(), self.sin_TE.data_ptr())
        self._scratch = self.scratch.data_ptr()

    def place(self, start_R: Tensor, num_new: int, span: int) -> Placement:
        if span > self.capacity:
            raise ValueError(f"span = {span}: the cache has room for {self.capacity} positions")
        return Placement(start_R.contiguous(), num_new)

    def write(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> None:
        self._run(layer, qkv_RNW, qk_norm_HE, placement, None)

    def attend(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> Tensor:
        num_rows = len(placement.start_R)
        out = torch.empty(num_rows, placement.num_new, self.num_heads * self.head_dim, dtype=torch.bfloat16)
        self._run(layer, qkv_RNW, qk_norm_HE, placement, out)
        return out

    def copy_rows(self, rows: Tensor, source: "NativeKvCache", source_rows: Tensor, length: int) -> None:
        num_tiles = -(-length // _TILE)
        for mine, theirs in zip((*self.keys, *self.values), (*source.keys, *source.values), strict=True):
            mine[rows, :, :num_tiles] = theirs[source_rows, :, :num_tiles]

    def move_row(self, source: int, target: int) -> None:
        for tensor in (*self.keys, *self.values):
            tensor[target] = tensor[source]

    def _run(
        self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement, out: Tensor | None
    ) -> None:
        keys, values = self._addresses[layer]
        self._attend(
            qkv_RNW.data_ptr(),
            None if qk_norm_HE is None else qk_norm_HE.data_ptr(),
            *self._tables,
            placement.start_R.data_ptr(),
            keys,
            values,
            None if out is None else out.data_ptr(),
            self._scratch,
            len(placement.start_R),
            placement.num_new,
            self.num_heads,
            self.num_key_heads,
            self.head_dim,
            self.capacity,
            self.eps,
        )


class NativeOperations:
    """The residual stream is kept in float32."""

    def __init__(self, library: ctypes.CDLL, eps: float) -> None:
        self.library, self.eps = library, eps
        self._add_norm, self._silu_mul = library.add_norm, library.silu_mul

    @classmethod
    def find(cls, config: ModelConfig, dtype: torch.dtype, device: torch.device) -> "NativeOperations | None":
        """None where there is no compiler, or where shapes, precision or device are not the kernels'."""
        groups = config.num_attention_heads // config.num_key_value_heads
        is_fit = config.head_dim % (2 * _LANES) == 0 and config.hidden_size % _LANES == 0 and groups <= _LANES
        is_fit = is_fit and config.intermediate_size % _LANES == 0
        if not is_fit or dtype != torch.bfloat16 or device.type != "cpu" or (library := load()) is None:
            return None
        return cls(library, config.rms_norm_eps)

    def allocate_cache(
        self,
        config: ModelConfig,
        num_layers: int,
        num_rows: int,
        capacity: int,
        *,
        is_verified: bool,
    ) -> NativeKvCache:
        return NativeKvCache(self.library, config, num_layers, num_rows, capacity)

    def enter(self, embedded: Tensor) -> Tensor:
        return embedded.float()

    def add_norm(self, x: Tensor, delta: Tensor | None, tap: Tensor | None = None) -> Tensor:
        size = x.shape[-1]
        normed = torch.empty(x.shape, dtype=torch.bfloat16)
        self._add_norm(
            x.data_ptr(),
            None if delta is None else delta.data_ptr(),
            normed.data_ptr(),
            None if tap is None else tap.data_ptr(),
            0 if tap is None else tap.stride(-2),
            x.numel() // size,
            size,
            self.eps,
        )
        return normed

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        size = gate_up.shape[-1] // 2
        out = torch.empty(*gate_up.shape[:-1], size, dtype=torch.bfloat16)
        self._silu_mul(gate_up.data_ptr(), out.data_ptr(), out.numel() // size, size)
        return out

    def softmax(self, logits: Tensor, temperature: float) -> Tensor:
        probs = torch.empty(logits.shape)
        size = logits.shape[-1]
        sharpness = 1 / temperature if temperature else 0.0
        self.library.softmax(logits.data_ptr(), probs.data_ptr(), probs.numel() // size, size, sharpness)
        return probs

    def draw(self, weights: Tensor, generator: torch.Generator) -> Tensor:
        weights = weights.contiguous()
        size = weights.shape[-1]
        tokens = torch.empty(weights.shape[:-1], dtype=torch.int64)
        uniforms = torch.rand(tokens.shape, generator=generator)
        self.library.draw(weights.data_ptr(), uniforms.data_ptr(), tokens.data_ptr(), tokens.numel(), size)
        return tokens


def pack_product(weight_OI: Tensor) -> Callable[[Tensor], Tensor] | None:
    """x -> x @ weight^T in bfloat16 on a copy of the weight, by matrix tiles; None where these or a fit are missing."""
    num_outputs, num_inputs = weight_OI.shape
    library = load() if num_outputs % _LANES == 0 and num_inputs % _TILE == 0 else None
    if library is None or not library.use_tiles():
        return None
    tiles = weight_OI.detach().to(torch.bfloat16).view(num_outputs // _LANES, _LANES, num_inputs // _TILE, _LANES, 2)
    packed = tiles.permute(0, 2, 3, 1, 4).contiguous()
    address, run = packed.data_ptr(), library.product

    def product(x: Tensor, packed: Tensor = packed) -> Tensor:  # noqa: ARG001 (keeps the weights alive)
        out = torch.empty(*x.shape[:-1], num_outputs, dtype=torch.bfloat16)
        x = x.contiguous()
        run(x.data_ptr(), address, out.data_ptr(), out.numel() // num_outputs, num_outputs, num_inputs)
        return out

    return product
