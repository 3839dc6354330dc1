"""What a forward pass of generation does between its matrix products, whoever computes it.

Two make them: workers.rollout.torch_operations on any device, and workers.rollout.native.operations by compiled kernels
on a processor. Shape suffixes: R rows, N new tokens a row, M = R * N tokens, D hidden size, I inner size of the
feed-forward block, W = (H + 2 K) E width of queries, keys and values, H query heads, K key and value heads, E head
dimension, V vocabulary.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from workers.model.config import ModelConfig


class KvCache(Protocol):
    """Keys and values of sequences, by layer and row, with room fixed at the start."""

    def place(self, start_R: Tensor, num_new: int, span: int) -> Any:
        """Where new tokens stand, start .. start + num_new - 1 in each row; span is above every position. The same for
        every layer of a pass, so it is made once."""

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


class Operations(Protocol):
    """The operations, all without gradient."""

    def allocate_cache(
        self, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> KvCache:
        """Room for num_rows sequences of capacity tokens. is_verified: several tokens a row are new in most passes."""

    def enter(self, embedded: Tensor) -> Tensor:
        """The residual stream that embedded tokens start: a copy, in the precision that it is kept in."""

    def add_norm(self, x: Tensor, delta: Tensor | None, tap: Tensor | None = None) -> Tensor:
        """x += delta, in place; x / sqrt(mean(x^2) + eps) in the precision of products. tap: a slice to copy x to."""

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """silu(gate) * up of the two side by side; [..., I]."""

    def softmax(self, logits: Tensor, temperature: float) -> Tensor:
        """softmax(logits / temperature), float32; 1 at the first largest for temperature 0."""

    def draw(self, weights: Tensor, generator: torch.Generator) -> Tensor:
        """One index per row of the last dimension, with chances proportional to its non-negative weights."""
