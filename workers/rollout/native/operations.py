"""The operations of generation by the compiled kernels, for bfloat16 on a processor; see workers.rollout.operations."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.layers import rotary_tables
from workers.rollout.native.library import load
from workers.rollout.operations import Chain, Emitted, KvCache, Operations, PackedLayer, Packing, Unread

_LANES = 16
_TILE = 32
"""Positions in whose multiples a cache has room."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where new tokens stand."""

    start_R: Tensor
    num_new: int
    packing: Packing | None

    @property
    def counts(self) -> int | None:
        """Address of how many there are of each row."""
        return None if self.packing is None else self.packing.count_R.data_ptr()


class Layer(ctypes.Structure):
    """kernels.c's `layer`."""

    _fields_: ClassVar = [
        (name, ctypes.c_void_p) for name in ("qkv", "output", "gated", "down", "qk_norm", "keys", "values", "tap")
    ]


class Shape(ctypes.Structure):
    """kernels.c's `shape`."""

    _fields_: ClassVar = [
        *((name, ctypes.c_int64) for name in ("hidden", "inner", "heads", "key_heads", "head_dim", "capacity")),
        ("eps", ctypes.c_float),
        ("cos", ctypes.c_void_p),
        ("sin", ctypes.c_void_p),
    ]


class DraftHead(ctypes.Structure):
    """kernels.c's `draft_head`."""

    _fields_: ClassVar = [
        *((name, ctypes.c_void_p) for name in ("embedding", "fuse", "join", "head")),
        *((name, ctypes.c_void_p) for name in ("feature_norm", "carry", "vocabulary")),
        *((name, ctypes.c_int64) for name in ("num_features", "num_outputs", "num_tokens")),
    ]

    @classmethod
    def of(cls, chain: Chain) -> "DraftHead | None":
        """None where a product is not by matrix tiles."""
        first, head = chain.fuse or chain.join, chain.head
        if not isinstance(first, Product) or not isinstance(head, Product):
            return None
        tensors = (chain.feature_norm_D, chain.carry_D, chain.vocabulary_V)
        return cls(
            chain.embedding_VD.data_ptr(),
            None if chain.fuse is None else first.address,
            None if chain.join is None else first.address,
            head.address,
            *(None if tensor is None else tensor.data_ptr() for tensor in tensors),
            *(first.num_inputs, head.num_outputs, len(chain.embedding_VD)),
        )


class NativeKvCache:
    """In bfloat16; keys and values lie in tiles, as matrix tiles and vectors want them; kernels.c says how."""

    def __init__(
        self, library: ctypes.CDLL, config: ModelConfig, num_layers: int, num_rows: int, capacity: int
    ) -> None:
        heads, e = config.num_key_value_heads, config.head_dim
        num_tiles = -(-capacity // _TILE)
        self.capacity = num_tiles * _TILE
        # All in one, so that a row is copied or moved at once: [keys and values by layer, rows, heads, tiles, tile].
        self.store = torch.empty(num_layers, 2, num_rows, heads, num_tiles, _TILE * e, dtype=torch.bfloat16)
        library.prefer_large_pages(self.store.data_ptr(), self.store.nbytes)
        self.store.zero_()
        self.cos_TE, self.sin_TE = rotary_tables(self.capacity, e, config.rope_theta, torch.device("cpu"))
        self.num_heads, self.num_key_heads, self.head_dim = config.num_attention_heads, heads, e
        self.eps = config.rms_norm_eps
        self.library = library
        self.scratch = torch.empty(library.attend_scratch_bytes(e, self.capacity), dtype=torch.uint8)
        self._addresses = [(keys.data_ptr(), values.data_ptr()) for keys, values in self.store]
        self._tables = (self.cos_TE.data_ptr(), self.sin_TE.data_ptr())
        self.shape = Shape(
            config.hidden_size,
            config.intermediate_size,
            *(self.num_heads, heads, e, self.capacity, self.eps),
            *self._tables,
        )
        self._layers: Sequence[PackedLayer] = ()
        self._table: ctypes.Array[Layer] | None = None

    def table(self, layers: Sequence[PackedLayer]) -> "ctypes.Array[Layer] | None":
        """The layers and this cache's room for them, as the kernels read them; None where a product is not theirs."""
        if layers is not self._layers:
            self._layers = layers
            rows = [_products(layer) for layer in layers]
            self._table = None
            if all(row is not None for row in rows):
                entries = [
                    Layer(*products, None if layer.qk_norm_HE is None else layer.qk_norm_HE.data_ptr(), *room, None)
                    for layer, products, room in zip(layers, rows, self._addresses, strict=True)
                ]
                self._table = (Layer * len(entries))(*entries)
        return self._table

    def scratch_for(self, num_tokens: int) -> Tensor:
        """Room for what a pass over so many tokens writes down on its way."""
        return self.room(self.library.pass_scratch_bytes(ctypes.byref(self.shape), num_tokens))

    def room(self, num_bytes: int) -> Tensor:
        """At least so many bytes to write on."""
        if self.scratch.numel() < num_bytes:
            self.scratch = torch.empty(num_bytes, dtype=torch.uint8)
        return self.scratch

    def place(self, start_R: Tensor, num_new: int, span: int, *, packing: Packing | None = None) -> Placement:
        if span > self.capacity:
            raise ValueError(f"span = {span}: the cache has room for {self.capacity} positions")
        return Placement(start_R.contiguous(), num_new, packing)

    def write(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> None:
        self._run(layer, qkv_RNW, qk_norm_HE, placement, None)

    def attend(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement) -> Tensor:
        out = torch.empty(*qkv_RNW.shape[:-1], self.num_heads * self.head_dim, dtype=torch.bfloat16)
        self._run(layer, qkv_RNW, qk_norm_HE, placement, out)
        return out

    def copy_rows(self, rows: Tensor, source: "NativeKvCache", source_rows: Tensor, length: int) -> None:
        ends = ((source.store, source_rows.contiguous()), (self.store, rows.contiguous()))
        sides = [(s.data_ptr(), at.data_ptr(), s.shape[2], s[0, 0, 0, 0].nbytes) for s, at in ends]
        num_layers, tile = len(self.store), self.store.shape[-1] * self.store.itemsize
        self.library.copy_rows(
            *(*sides[0], *sides[1], len(rows), 2 * num_layers, self.num_key_heads, -(-length // _TILE) * tile)
        )

    def move_row(self, source: int, target: int) -> None:
        self.store[:, :, target] = self.store[:, :, source]

    def _run(
        self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Placement, out: Tensor | None
    ) -> None:
        keys, values = self._addresses[layer]
        self.library.attend(
            qkv_RNW.data_ptr(),
            None if qk_norm_HE is None else qk_norm_HE.data_ptr(),
            *self._tables,
            placement.start_R.data_ptr(),
            placement.counts,
            keys,
            values,
            None if out is None else out.data_ptr(),
            self.scratch.data_ptr(),
            len(placement.start_R),
            placement.num_new,
            self.num_heads,
            self.num_key_heads,
            self.head_dim,
            self.capacity,
            self.eps,
        )


class NativeOperations(Operations):
    """The residual stream is kept in float32."""

    tile: ClassVar[int | None] = 16

    def __init__(self, library: ctypes.CDLL, eps: float) -> None:
        self.library, self.eps = library, eps
        self._add_norm = library.add_norm

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

    def embed(self, token_ids_RN: Tensor, embedding_VD: Tensor, packing: Packing | None = None) -> Tensor:
        num_rows, num_new = token_ids_RN.shape
        size = embedding_VD.shape[1]
        shape = (num_rows, num_new) if packing is None else (packing.num_tokens,)
        x = torch.empty(*shape, size)
        token_ids_RN = token_ids_RN.contiguous()
        counts = None if packing is None else packing.count_R.data_ptr()
        self.library.embed(
            *(token_ids_RN.data_ptr(), counts, embedding_VD.data_ptr(), x.data_ptr(), num_rows, num_new, size)
        )
        return x

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

    def verify(
        self,
        drafted_RK: Tensor,
        draft_probs_RKV: Tensor | None,
        probs_RJV: Tensor,
        generator: torch.Generator,
        num_drafted_R: Tensor | None,
        packing: Packing | None = None,
    ) -> Emitted | None:
        num_rows, num_new, num_tokens = len(drafted_RK), drafted_RK.shape[1] + 1, probs_RJV.shape[-1]
        if not probs_RJV.is_contiguous() or (draft_probs_RKV is not None and draft_probs_RKV.stride(2) != 1):
            return None
        uniforms_RJ = torch.rand(num_rows, num_new, generator=generator)
        num_accepted_R = torch.empty(num_rows, dtype=torch.int64)
        token_ids_RJ = torch.empty(num_rows, num_new, dtype=torch.int64)
        logprobs_RJ, weights_V = torch.empty(num_rows, num_new), torch.empty(num_tokens)
        lengths_R = None if num_drafted_R is None else num_drafted_R.contiguous()
        q = (None, 0, 0) if draft_probs_RKV is None else (draft_probs_RKV.data_ptr(), *draft_probs_RKV.stride()[:2])
        self.library.verify(
            *(drafted_RK.data_ptr(), *drafted_RK.stride(), *q),
            None if lengths_R is None else lengths_R.data_ptr(),
            *(tensor.data_ptr() for tensor in (probs_RJV, uniforms_RJ, num_accepted_R, token_ids_RJ, logprobs_RJ)),
            *(num_rows, num_new - 1, num_tokens, packing is not None, weights_V.data_ptr()),
        )
        return Emitted(num_accepted_R, token_ids_RJ, logprobs_RJ)

    def run_layers(
        self,
        layers: Sequence[PackedLayer],
        x_RND: Tensor,
        cache: KvCache,
        placement: Placement,
        taps: Mapping[int, Tensor],
        first_qkv_RNW: Tensor | None = None,
    ) -> Tensor:
        """In one call where all products are by matrix tiles."""
        assert isinstance(cache, NativeKvCache)
        table = cache.table(layers)
        if table is None:
            return self._run_one_by_one(layers, x_RND, cache, placement, taps, first_qkv_RNW)
        tap_stride = 0
        for index, tap in taps.items():
            table[index].tap, tap_stride = tap.data_ptr(), tap.stride(-2)
        normed = torch.empty(x_RND.shape, dtype=torch.bfloat16)
        scratch = cache.scratch_for(x_RND.numel() // x_RND.shape[-1])
        self.library.run_layers(
            table,
            len(layers),
            ctypes.byref(cache.shape),
            x_RND.data_ptr(),
            None if first_qkv_RNW is None else first_qkv_RNW.data_ptr(),
            placement.start_R.data_ptr(),
            placement.counts,
            normed.data_ptr(),
            tap_stride,
            len(placement.start_R),
            placement.num_new,
            scratch.data_ptr(),
        )
        for index in taps:
            table[index].tap = None
        return normed

    def _run_one_by_one(
        self,
        layers: Sequence[PackedLayer],
        x_RND: Tensor,
        cache: "NativeKvCache",
        placement: Placement,
        taps: Mapping[int, Tensor],
        first_qkv_RNW: Tensor | None,
    ) -> Tensor:
        """The taps of packed tokens are put in their place afterwards."""
        if placement.packing is None:
            return super().run_layers(layers, x_RND, cache, placement, taps, first_qkv_RNW)
        packed = {index: torch.empty(x_RND.shape, dtype=tap.dtype) for index, tap in taps.items()}
        normed = super().run_layers(layers, x_RND, cache, placement, packed, first_qkv_RNW)
        for index, tap in taps.items():
            tap[placement.packing.is_new(placement.num_new)] = packed[index]
        return normed

    def draft_chain(
        self,
        chain: Chain,
        unread: Unread,
        cache: KvCache,
        draft_length: int,
        temperature: float,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor] | None:
        assert isinstance(cache, NativeKvCache)
        table, head = cache.table(chain.layers), DraftHead.of(chain)
        if table is None or head is None:
            return None
        features, next_ids, start_R, count_R = unread
        num_rows, width = next_ids.shape
        tokens_KR = torch.empty(draft_length, num_rows, dtype=torch.int64)
        probs_KRV = torch.empty(draft_length, num_rows, head.num_tokens)
        uniforms_KR = torch.rand(draft_length, num_rows, generator=generator)
        shape, head_at = ctypes.byref(cache.shape), ctypes.byref(head)
        scratch = cache.room(self.library.draft_scratch_bytes(shape, head_at, num_rows, width))
        self.library.draft(
            *(table, shape, head_at, features.data_ptr(), features.stride(0), next_ids.data_ptr(), next_ids.stride(0)),
            *(start_R.data_ptr(), count_R.data_ptr(), 1 / temperature if temperature else 0.0),
            *(uniforms_KR.data_ptr(), tokens_KR.data_ptr(), probs_KRV.data_ptr()),
            *(num_rows, draft_length, scratch.data_ptr()),
        )
        return tokens_KR.T, probs_KRV.transpose(0, 1)

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


class Product:
    """x -> x @ weight^T by matrix tiles, or the gated unit of two weights, for bfloat16 x [..., I]."""

    def __init__(self, library: ctypes.CDLL, weight_OI: Tensor, *, is_gated: bool) -> None:
        """is_gated: 16 rows of the gate and 16 of the other weight take turns."""
        self.num_outputs, self.num_inputs, self.is_gated = *weight_OI.shape, is_gated
        tiles = weight_OI.view(self.num_outputs // _LANES, _LANES, self.num_inputs // _TILE, _LANES, 2)
        self.packed = tiles.permute(0, 2, 3, 1, 4).contiguous()
        self.address, self._run = self.packed.data_ptr(), library.product

    def __call__(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        width = self.num_outputs // 2 if self.is_gated else self.num_outputs
        out = torch.empty(*x.shape[:-1], width, dtype=torch.bfloat16)
        num_rows = out.numel() // width
        self._run(
            *(x.data_ptr(), self.address, out.data_ptr(), num_rows, self.num_outputs, self.num_inputs, self.is_gated)
        )
        return out


def pack_product(weight_OI: Tensor) -> Product | None:
    """A product on a copy of the weight; None where there are no matrix tiles, or its shape does not fill them."""
    library = _library_with_tiles(weight_OI)
    return library and Product(library, weight_OI.detach().to(torch.bfloat16).contiguous(), is_gated=False)


def pack_gated_product(gate_OI: Tensor, up_OI: Tensor) -> Product | None:
    """The same for silu(x @ gate^T) * (x @ up^T)."""
    library = _library_with_tiles(gate_OI)
    if library is None:
        return None
    pair = [weight.detach().to(torch.bfloat16).unflatten(0, (-1, _LANES)) for weight in (gate_OI, up_OI)]
    return Product(library, torch.stack(pair, 1).flatten(0, 2).contiguous(), is_gated=True)


def _library_with_tiles(weight_OI: Tensor) -> ctypes.CDLL | None:
    num_outputs, num_inputs = weight_OI.shape
    library = load() if num_outputs % _LANES == 0 and num_inputs % _TILE == 0 else None
    return library if library is not None and library.use_tiles() else None


def _products(layer: PackedLayer) -> tuple[int, ...] | None:
    """Addresses of a layer's packed weights."""
    products = (layer.qkv, layer.output, layer.gated, layer.down)
    if not all(isinstance(product, Product) for product in products):
        return None
    return tuple(product.address for product in products if isinstance(product, Product))
