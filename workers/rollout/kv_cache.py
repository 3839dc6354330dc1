"""Keys and values of the sequences being decoded, in float32, with room fixed at the start.

float32 and plain batched products beat bfloat16 attention for the few new tokens of a decoding pass on a processor.

Shape suffixes: R rows in use, T capacity, S span read, N new tokens a row, K key and value heads, E head dimension.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class KvCache:
    """Keys and values by layer, indexed [row, position, head, channel] whatever their order in memory."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @classmethod
    def allocate(
        cls,
        num_layers: int,
        num_rows: int,
        capacity: int,
        num_heads: int,
        head_dim: int,
        *,
        transpose_keys: bool,
        device: torch.device,
    ) -> "KvCache":
        """Zeroed room for num_rows sequences of capacity tokens.

        transpose_keys: keep a channel's positions side by side in memory. Scores of several new tokens a row then take
        about half the time, while writing keys takes longer, which does not pay for a single new token.
        """

        def keys() -> Tensor:
            if transpose_keys:
                return torch.zeros(num_rows, num_heads, head_dim, capacity, device=device).permute(0, 3, 1, 2)
            return values()

        def values() -> Tensor:
            return torch.zeros(num_rows, num_heads, capacity, head_dim, device=device).transpose(1, 2)

        return cls(tuple(keys() for _ in range(num_layers)), tuple(values() for _ in range(num_layers)))

    def write(self, layer: int, positions_RN: Tensor, rows_R1: Tensor, k_RNKE: Tensor, v_RNKE: Tensor) -> None:
        """Put new tokens' keys and values at their positions."""
        self.keys[layer].index_put_((rows_R1, positions_RN), k_RNKE)
        self.values[layer].index_put_((rows_R1, positions_RN), v_RNKE)

    def read(self, layer: int, num_rows: int, span: int) -> tuple[Tensor, Tensor]:
        """Keys [R * K, E, S] and values [R * K, S, E] of the first positions, as views ready for batched products."""
        keys = self.keys[layer][:num_rows, :span].permute(0, 2, 3, 1).flatten(0, 1)
        values = self.values[layer][:num_rows, :span].transpose(1, 2).flatten(0, 1)
        return keys, values

    def copy_rows(self, rows: Tensor, source: "KvCache", source_rows: Tensor, length: int) -> None:
        """Take over the first `length` positions of another cache's rows."""
        for mine, theirs in zip(self.keys + self.values, source.keys + source.values, strict=True):
            mine[rows, :length] = theirs[source_rows, :length]

    def move_row(self, source: int, target: int) -> None:
        """Overwrite one row by another."""
        for tensor in self.keys + self.values:
            tensor[target] = tensor[source]
