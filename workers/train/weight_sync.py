"""The policy's new weights on their way into the rollout engines."""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from workers.rollout.engine import RolloutEngine
from workers.train.trainer import PolicyTrainer


class WeightSync(Protocol):
    """Puts the trainer's present weights, the draft head's too, into every engine."""

    def sync(self) -> None:
        """Return when every engine has them."""


class DirectSync:
    """Trainer and engine in one process."""

    def __init__(self, trainer: PolicyTrainer, engine: RolloutEngine) -> None:
        self._trainer = trainer
        self._engine = engine

    def sync(self) -> None:
        self._engine.update_policy(self._trainer.export_policy())
        draft: Mapping[str, Tensor] | None = self._trainer.export_draft()
        if draft is not None:
            self._engine.update_draft(draft)
