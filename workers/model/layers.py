"""The pieces that the policy and the draft head share, as trained.

Shape suffixes: B sequences, T positions, D hidden size, H query heads, K key and value heads, E head dimension.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang and Sennrich, arXiv:1910.07467, eq. 4)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class SwiGlu(nn.Module):
    """down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv:2002.05202, eq. 6)."""

    def __init__(self, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))


def rotary_tables(num_positions: int, head_dim: int, theta: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """cos and sin of the rotary embedding at positions 0 .. num_positions - 1, both [T, E] float32.

    angle[t, j] = t * theta^(-2j / E) for j < E / 2, repeated for the second half (Su et al. 2021, arXiv:2104.09864,
    eq. 15, in the half-split order of Qwen and Llama checkpoints).
    """
    frequency = theta ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angle = torch.outer(torch.arange(num_positions, device=device, dtype=torch.float32), frequency)
    angle_TE = torch.cat([angle, angle], dim=-1)
    return angle_TE.cos(), angle_TE.sin()


def rotate(x: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
    """Turn x [..., T, E] by its positions' angles."""
    first, second = x.chunk(2, dim=-1)
    return x * cos_TE.to(x.dtype) + torch.cat([-second, first], dim=-1) * sin_TE.to(x.dtype)


def split_heads(x_BTD: Tensor, head_dim: int) -> Tensor:
    """[B, T, heads * E] to [B, T, heads, E]."""
    return x_BTD.unflatten(-1, (-1, head_dim))
