"""What is declared of a metric, and how many of a kind there may be."""

from dataclasses import dataclass
from typing import Literal

MAX_DRAFT_LENGTH = 16
MAX_SEQUENCES_EXPONENT = 12
"""Rounds are told apart by the sequences decoded together, up to 2 to the power of this."""

MAX_NODES = 32
MAX_GPUS = 32
"""Machines and GPUs with series of their own; what is summed up counts all of them."""

Axis = Literal["step", "warm_up_step", "draft_pretraining_step"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One declared metric."""

    name: str
    """`area/quantity_unit`; a ratio or a share ends in `_ratio` or `_fraction`, a count starts with `num_`."""
    unit: str
    """Symbol for an axis: `s`, `tokens`, `nats`, `1` for a pure number, `%` where a fraction is shown as percent."""
    meaning: str
    """One sentence."""
    reduction: Literal["mean", "sum", "max", "min", "last", "pooled"]
    """How one step's parts became one number. `pooled`: counters were added up before dividing."""
    source: Literal["engine", "trainer", "loop", "reward", "probe", "hardware"]
    """What measured it."""
    axis: Axis = "step"
    """What its step counts."""
