"""The policy's new weights on their way into the rollout engines."""

from typing import Protocol


class WeightSync(Protocol):
    """Puts the trainer's present weights, the draft head's too, into every engine."""

    def sync(self) -> None:
        """Return when every engine has them."""
