"""What a forward pass of generation does between its matrix products, whoever computes it.

Two make them: workers.rollout.torch_operations on any device, and workers.rollout.native.operations by compiled kernels
on a processor. Shape suffixes: R rows, N new tokens a row, M = R * N tokens, D hidden size, I inner size of the
feed-forward block, W = (H + 2 K) E width of queries, keys and values, H query heads, K key and value heads, E head
dimension, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.algo.acceptance import Randomness
from workers.model.config import ModelConfig

Linear = Callable[[Tensor], Tensor]


class KvCache(Protocol):
    """Keys and values of sequences, by layer and row, with room fixed at the start."""

    def place(self, start_R: Tensor, num_new: int, span: int, *, packing: "Packing | None" = None) -> Any:
        """Where new tokens stand, start .. start + num_new - 1 in each row; span is above every position. The same for
        every layer of a pass, so it is made once. packing: where some rows have fewer, for operations that pack."""

    def write(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Any) -> None:
        """Norm and rotate new tokens' keys, and store them with the values."""

    def attend(self, layer: int, qkv_RNW: Tensor, qk_norm_HE: Tensor | None, placement: Any) -> Tensor:
        """write(), then softmax(q k^T) v over each token's own and earlier positions; [R, N, H * E].

        The factor 1 / sqrt(E) is part of the weights.
        """

    def copy_rows(self, rows: Tensor, source: Any, source_rows: Tensor, length: int) -> None:
        """Take over at least the first `length` positions of rows of another cache of the same kind."""

    def move_row(self, source: int, target: int) -> None:
        """Overwrite one row by another."""


class Packing(NamedTuple):
    """Which of N new tokens a row there are: the first ones."""

    count_R: Tensor
    """int64: how many, at least 1."""
    num_tokens: int
    """Of all rows."""

    @classmethod
    def of(cls, count_R: Tensor) -> "Packing":
        return cls(count_R, int(count_R.sum()))

    def is_new(self, num_new: int) -> Tensor:
        """bool [R, N]."""
        return torch.arange(num_new, device=self.count_R.device) < self.count_R.unsqueeze(1)

    def unpacked(self, packed: Tensor, num_new: int) -> Tensor:
        """[M, ...] as [R, N, ...], 0 in between."""
        padded = packed.new_zeros(len(self.count_R), num_new, *packed.shape[1:])
        padded[self.is_new(num_new)] = packed
        return padded


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """One decoder layer, with all that can be folded: the weights of the norms before qkv and gated into these
    ((n * w) @ W^T = n @ (W * w)^T), the factor 1 / sqrt(head_dim) of the scores into what makes the queries."""

    qkv: Linear
    qk_norm_HE: Tensor | None
    """float32 [query and key heads, head_dim]; None in a draft head that does not norm them."""
    output: Linear
    gated: Linear
    """silu(gate) * up of the feed-forward block."""
    down: Linear


class Told(NamedTuple):
    """Emitted, on the host."""

    num_accepted: list[int]
    token_ids: list[list[int]]
    logprobs: list[list[float]]


class Emitted(NamedTuple):
    """What a round brings forth."""

    num_accepted_R: Tensor
    """int64: drafted tokens accepted, from the front."""
    token_ids_RJ: Tensor
    """int64: the accepted ones, the token after them, and what does not count."""
    logprobs_RJ: Tensor
    """Of these under the policy; of what does not count, anything."""

    def tell(self) -> Told:
        """To the host, from other devices in one piece: each piece would wait for the device anew."""
        if self.logprobs_RJ.device.type == "cpu":
            return Told(*(tensor.tolist() for tensor in self))
        num_new = self.token_ids_RJ.shape[1]
        parts = (self.num_accepted_R.unsqueeze(1), self.token_ids_RJ, self.logprobs_RJ)
        # float64 holds token ids and float32 exactly.
        rows = torch.cat([part.double() for part in parts], 1).cpu()
        accepted_R1, ids_RJ, logprobs_RJ = rows.split([1, num_new, num_new], 1)
        return Told(accepted_R1.flatten().long().tolist(), ids_RJ.long().tolist(), logprobs_RJ.tolist())


@dataclass(frozen=True, slots=True)
class Chain:
    """A draft head of one layer whose steps need nothing else of each other.

    It reads a token's embedding and the policy's features, then its own last output: side by side, the latter normed,
    the features fused; or where there is a join their sum, the latter through a norm, scaled, normed again and joined.
    """

    layers: tuple[PackedLayer]
    embedding_VD: Tensor
    head: Linear
    fuse: Linear | None = None
    join: Linear | None = None
    feature_norm_D: Tensor | None = None
    """float32 scale of the features, where there is a join."""
    carry_D: Tensor | None = None
    """float32 scale of the normed last output; without a join of what the residual stream starts from, which is the
    output as it is where there is no scale."""
    vocabulary_V: Tensor | None = None
    """int64: the tokens that the head's outputs stand for, where they are not all."""


class Unread(NamedTuple):
    """Features that a draft head has not read yet, by row; P is at least the largest count."""

    features_RPF: Tensor
    next_ids_RP: Tensor
    """int64: the token after each."""
    start_R: Tensor
    """int64: position of the first."""
    count_R: Tensor
    """int64: how many there are, at least 1."""


class Operations(ABC):
    """The operations, all without gradient."""

    is_static: ClassVar[bool] = False
    """Whether regions run on tensors that keep their place, so that weights have to be overwritten, not replaced, and
    what a region gives is overwritten by its next run; see workers.rollout.graphs."""
    tile: ClassVar[int | None] = None
    """Where a pass reads no padding if rows have different numbers of new tokens, [R, N, ...] being [M, ...], one row's
    tokens behind the other's: it takes the time of whole tiles of so many tokens."""
    num_first_runs: ClassVar[int] = 0
    """Runs of regions in this process that took the time of preparing for later ones."""

    @abstractmethod
    def allocate_cache(
        self, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> KvCache:
        """Room for num_rows sequences of capacity tokens. is_verified: several tokens a row are new in most passes."""

    def keep_cache(
        self, name: str, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> KvCache:
        """The cache of that name for one generate() call, empty: the rows that are decoded together."""
        return self.allocate_cache(config, num_layers, num_rows, capacity, is_verified=is_verified)

    def round_span(self, span: int) -> int:
        """A span at or above this, of those that passes are made for."""
        return span

    def randomness(self, num_rows: int, num_draws: int, generator: torch.Generator) -> Randomness:
        """What a region draws so many times a row from."""
        return generator

    def region(
        self, name: str, function: Callable[..., tuple[Any, ...]], inputs: Sequence[Any], settings: Hashable = ()
    ) -> tuple[Any, ...]:
        """function(*inputs), where inputs are tensors whose first dimension is rows, or None, and results likewise.

        settings: all else that decides what it computes; function may stand for every one of equal name and settings.
        """
        return function(*inputs)

    @abstractmethod
    def enter(self, embedded: Tensor) -> Tensor:
        """The residual stream that embedded tokens start: a copy, in the precision that it is kept in."""

    def embed(self, token_ids_RN: Tensor, embedding_VD: Tensor, packing: Packing | None = None) -> Tensor:
        """The same of token ids, [R, N, D]."""
        assert packing is None, "these operations do not pack"
        return self.enter(F.embedding(token_ids_RN, embedding_VD))

    @abstractmethod
    def add_norm(self, x: Tensor, delta: Tensor | None, tap: Tensor | None = None) -> Tensor:
        """x += delta, in place; x / sqrt(mean(x^2) + eps) in the precision of products. tap: a slice to copy x to."""

    @abstractmethod
    def softmax(self, logits: Tensor, temperature: float) -> Tensor:
        """softmax(logits / temperature), float32; 1 at the first largest for temperature 0."""

    @abstractmethod
    def draw(self, weights: Tensor, randomness: Randomness) -> Tensor:
        """See workers.algo.acceptance.draw."""

    def verify(
        self,
        drafted_RK: Tensor,
        draft_probs_RKV: Tensor | None,
        probs_RJV: Tensor,
        randomness: Randomness,
        num_drafted_R: Tensor | None,
        packing: Packing | None = None,
    ) -> "Emitted | None":
        """workers.algo.acceptance.verify() and what follows from it, at once; None where that is left to PyTorch.

        packing: where the policy's probabilities are packed.
        """
        return None

    def run_layers(
        self,
        layers: Sequence[PackedLayer],
        x_RND: Tensor,
        cache: KvCache,
        placement: Any,
        taps: Mapping[int, Tensor],
        first_qkv_RNW: Tensor | None = None,
    ) -> Tensor:
        """Every layer over new tokens, the residual stream in place; returns that, normed, [R, N, D].

        taps: slices that a layer's output is copied to, by its index, not packed where the rest is. first_qkv_RNW: the
        first layer's, where it does not come from x alone.
        """
        normed = self.add_norm(x_RND, None) if first_qkv_RNW is None else None
        for index, layer in enumerate(layers):
            qkv = first_qkv_RNW if normed is None else layer.qkv(normed)
            assert qkv is not None
            normed = self.add_norm(x_RND, layer.output(cache.attend(index, qkv, layer.qk_norm_HE, placement)))
            normed = self.add_norm(x_RND, layer.down(layer.gated(normed)), taps.get(index))
        assert normed is not None
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
        """A whole draft at once: what was not read yet is read, then steps are taken from each row's last position of
        it. Token ids [R, K] and their distributions [R, K, V]; None where steps have to be taken one by one."""
        return None
