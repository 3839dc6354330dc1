"""The training-time test of EAGLE-3 (arXiv:2503.01840, section 3.2), for every draft of one layer that reads features.

Shape suffixes: B sequences, T positions, N start positions of a draft, D hidden size, I input of the attention, H query
heads, E head dimension.
"""

from abc import abstractmethod
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.model.config import ModelConfig
from workers.model.draft import DraftModule, PolicyPass
from workers.model.layers import rotary_tables


class Projections(Protocol):
    """The attention of a draft's layer."""

    o_proj: torch.nn.Linear

    def project(self, x_BNI: Tensor, cos_NE: Tensor, sin_NE: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries [B, H, N, E], rotated keys and values [B, K, N, E]."""


class UnrolledDraft(DraftModule):
    """One layer over the policy's features that drafts on with its own output in their place.

    Step 0 reads the policy's features; step s > 0 reads the output of step s - 1, and attends to the policy's positions
    up to its start and to its own s drafted ones, exactly as in generation.
    """

    @property
    @abstractmethod
    def shape(self) -> ModelConfig:
        """Widths and heads of the layer."""

    @property
    @abstractmethod
    def attention(self) -> Projections:
        """The layer's attention."""

    @abstractmethod
    def features(self, seen: PolicyPass) -> Tensor:
        """What step 0 reads, [B, T, D]."""

    @abstractmethod
    def embed(self, seen: PolicyPass) -> Tensor:
        """The tokens as the layer reads them, [B, T, D]."""

    @abstractmethod
    def enter(self, embedded_BND: Tensor, hidden_BND: Tensor) -> tuple[Tensor, Tensor]:
        """(residual [B, N, D], input of the attention [B, N, I])."""

    @abstractmethod
    def leave(self, residual_BND: Tensor, seen: PolicyPass) -> tuple[Tensor, Tensor]:
        """(what the next step reads [B, N, D], scores [B, N, V]) from the residual after attention."""

    def forward(self, seen: PolicyPass, unroll_length: int) -> list[Tensor]:
        """See DraftModule.forward."""
        num_starts = seen.token_ids_BT.shape[1] - 2
        cos_TE, sin_TE = rotary_tables(num_starts, self.shape.head_dim, self.shape.rope_theta, seen.token_ids_BT.device)
        hidden, embedded_BTD = self.features(seen)[:, :num_starts], self.embed(seen)
        keys: list[Tensor] = []
        values: list[Tensor] = []
        logits: list[Tensor] = []
        for step in range(unroll_length):
            hidden = hidden[:, : num_starts - step]
            residual, x = self.enter(embedded_BTD[:, step + 1 : num_starts + 1], hidden)
            # Start i has drafted `step` tokens, so it stands at position i + step.
            query, key, value = self.attention.project(x, cos_TE[step:], sin_TE[step:])
            num_groups = query.shape[1] // key.shape[1]
            keys.append(key.repeat_interleave(num_groups, dim=1))
            values.append(value.repeat_interleave(num_groups, dim=1))
            mixed = _attend(query, keys, values).transpose(1, 2).flatten(2)
            hidden, scores = self.leave(residual + self.attention.o_proj(mixed), seen)
            logits.append(scores)
        return logits


def _attend(query_BHNE: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Start i attends to step 0's keys up to i, which hold the policy's features, and to key i of every later step."""
    if len(keys) == 1:
        return F.scaled_dot_product_attention(query_BHNE, keys[0], values[0], is_causal=True)
    num_starts, scale = query_BHNE.shape[2], query_BHNE.shape[3] ** -0.5
    own_keys = torch.stack([key[:, :, :num_starts] for key in keys[1:]], dim=3)
    own_values = torch.stack([value[:, :, :num_starts] for value in values[1:]], dim=3)
    after = torch.ones(num_starts, num_starts, dtype=torch.bool, device=query_BHNE.device).triu(1)
    context = (query_BHNE @ keys[0][:, :, :num_starts].transpose(-1, -2)).masked_fill(after, float("-inf"))
    own = (query_BHNE.unsqueeze(3) * own_keys).sum(-1)
    weights = (torch.cat([context, own], dim=-1).float() * scale).softmax(-1).to(query_BHNE.dtype)
    from_context = weights[..., :num_starts] @ values[0][:, :, :num_starts]
    return from_context + (weights[..., num_starts:].unsqueeze(-1) * own_values).sum(3)
