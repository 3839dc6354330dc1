"""Learning-rate schedule of supervised training."""

from collections.abc import Sequence

from torch.optim import Optimizer

_RISE_STEPS = 10
_DECAY_SHARE = 0.4
_LEAST = 0.02


def scheduled_fraction(step: int, num_steps: int) -> float:
    """Share of the full learning rate at a step from 0: a rise over 10 steps, linear decay over the last 40 %."""
    rise = (step + 1) / _RISE_STEPS
    decay = (1 - step / num_steps) / _DECAY_SHARE
    return min(1.0, rise, max(_LEAST, decay))


class Schedule:
    """Scales the learning rates that the optimisers were built with."""

    def __init__(self, optimizers: Sequence[Optimizer], num_steps: int) -> None:
        self._groups = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
        self._num_steps = num_steps

    def apply(self, step: int) -> None:
        """Set the learning rates of a step from 0."""
        fraction = scheduled_fraction(step, self._num_steps)
        for group, full in self._groups:
            group["lr"] = full * fraction
