"""One call's random numbers, and how it turns logits into probabilities and tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.algo.acceptance import draw
from workers.algo.sampling import Truncation, sampling_probs


@dataclass(frozen=True, slots=True)
class Sampler:
    """Policy and draft use the same temperature and truncation."""

    temperature: float
    truncation: Truncation
    generator: torch.Generator

    def probs(self, logits: Tensor) -> Tensor:
        """See workers.algo.sampling.sampling_probs."""
        return sampling_probs(logits, self.temperature, self.truncation)

    def draw(self, probs: Tensor) -> Tensor:
        """One token per row of probabilities."""
        return draw(probs, self.generator)
