"""The policy's new weights on their way into the rollout engines: who gives, who takes, who carries.

Weights are whole tensors under their Hugging Face names, in an order that never changes. They come one after another,
so that neither side nor the way between them ever holds more than a few buckets of what may be hundreds of gibibytes.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

from torch import Tensor

Part = Literal["policy", "draft"]


class WeightSource(Protocol):
    """What of a policy trainer the sync uses."""

    def export_weights(self, part: Part) -> Iterator[tuple[str, Tensor]]:
        """The present weights, gathered. Over several ranks a collective that each of them must walk through; the
        tensors arrive on rank 0, the others get none. Not to be written to, and valid until the next update."""


class WeightTarget(Protocol):
    """What of a rollout engine the sync uses."""

    def update_weights(self, part: Part, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Take up weights as they come. A tensor stays what it is for as long as the engine refers to it, and its
        bucket in memory with it: who keeps one copies it. The policy's weights come before the draft's."""


class WeightSync(Protocol):
    """Puts the trainer's present weights, the draft's too, into every engine."""

    def sync(self) -> dict[str, float]:
        """Return when every engine has them: what was measured, by catalogue name."""
