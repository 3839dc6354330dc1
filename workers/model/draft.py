"""What the drafts with weights have in common, as trained.

Shape suffixes: B sequences, T positions, N start positions of a draft, V vocabulary, F features (taps * hidden size).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from workers.model.qwen3 import Qwen3Policy


class PolicyPass(NamedTuple):
    """What a draft reads: one pass of the policy over right-padded sequences."""

    policy: Qwen3Policy
    """Where a draft shares the policy's weights, it reads them here and sends no gradient into them."""
    token_ids_BT: Tensor
    """int64."""
    features_BTF: Tensor | None
    """The policy's hidden states after the draft's tap_layers, detached; None for a draft that taps none."""


class DraftModule(nn.Module, ABC):
    """A draft with weights, whatever it is made of."""

    @property
    @abstractmethod
    def tap_layers(self) -> tuple[int, ...]:
        """Layers of the policy whose outputs it reads."""

    @property
    def vocabulary_V(self) -> Tensor | None:
        """int64 token ids, ascending, that the columns of its scores stand for; None where those are all tokens."""
        return None

    @abstractmethod
    def initialize(self, policy: Qwen3Policy, seed: int) -> None:
        """Draw the weights from which training starts."""

    @abstractmethod
    def forward(self, seen: PolicyPass, unroll_length: int) -> list[Tensor]:
        """Scores of the drafts that would start at every position.

        Step s of the result is [B, N - s, V] with N = T - 2; its row i scores token i + s + 2 as the s-th further draft
        step would after the policy's pass over the tokens up to position i, token i + 1 having been emitted and the
        drafted tokens being those of token_ids_BT.
        """

    def export(self, policy: Qwen3Policy) -> dict[str, Tensor]:
        """What an engine packs, by name: its own weights, and those it shares with the policy and folds."""
        return {name: tensor.detach() for name, tensor in self.state_dict().items()}


@torch.no_grad()
def draw_weights(parameters: Iterable[nn.Parameter], seed: int) -> None:
    """Matrices normal with std 1 / sqrt(3 fan-in), vectors 1."""
    parameters = list(parameters)
    generator = torch.Generator(device=parameters[0].device).manual_seed(seed)
    for parameter in parameters:
        if parameter.ndim == 2:
            parameter.normal_(std=(3 * parameter.shape[1]) ** -0.5, generator=generator)
        else:
            parameter.fill_(1.0)
