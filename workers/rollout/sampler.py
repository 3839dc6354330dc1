"""One call's random numbers, and how it turns logits into probabilities and tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.algo.sampling import Truncation, truncate
from workers.rollout.operations import Operations


@dataclass(frozen=True, slots=True)
class Sampler:
    """Policy and draft use the same temperature and truncation."""

    temperature: float
    truncation: Truncation
    generator: torch.Generator
    operations: Operations

    def probs(self, logits: Tensor) -> Tensor:
        """See workers.algo.sampling.sampling_probs."""
        probs = self.operations.softmax(logits, self.temperature)
        return truncate(probs, self.truncation) if self.truncation.is_active and self.temperature else probs

    def draw(self, probs: Tensor) -> Tensor:
        """One token per row of probabilities."""
        return self.operations.draw(probs, self.generator)
