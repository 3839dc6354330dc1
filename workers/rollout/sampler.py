"""One call's random numbers, and how it turns logits into probabilities and tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.algo.acceptance import Randomness
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

    @property
    def settings(self) -> tuple[float, Truncation]:
        """What decides probs()."""
        return self.temperature, self.truncation

    def draw(self, probs: Tensor, randomness: Randomness = None) -> Tensor:
        """One token per row of probabilities; from this call's generator unless something else is given."""
        return self.operations.draw(probs, self.generator if randomness is None else randomness)


def column(randomness: Randomness, index: int) -> Randomness:
    """What one of several draws a row draws from."""
    return randomness[:, index] if isinstance(randomness, Tensor) else randomness
