"""From logits to probabilities and tokens."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.algo.acceptance import draw


@dataclass(frozen=True, slots=True)
class Sampler:
    """One call's temperature and random numbers; policy and draft use the same temperature."""

    temperature: float
    generator: torch.Generator

    def probs(self, logits: Tensor) -> Tensor:
        """softmax(logits / temperature), float32; one-hot at the largest for temperature 0."""
        if self.temperature == 0:
            return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()
        return (logits.float() / self.temperature).softmax(-1)

    def draw(self, probs: Tensor) -> Tensor:
        """One token per row of probabilities."""
        return draw(probs, self.generator)
