"""What of the cluster a run takes, and how weights go from trainer to engines."""

from typing import Literal

from pydantic import PositiveFloat

from contract.config.base import ConfigModel, Count, CountOrNone


class ResourcesConfig(ConfigModel):
    """Machines and GPUs; checked against the cluster before the run is handed to it."""

    num_nodes: Count = 1
    """Machines."""
    gpus_per_node: CountOrNone = 0
    """GPUs taken on each; 0 runs engines and trainer on processors."""
    gpu_memory_gib: PositiveFloat | None = None
    """Memory of each GPU. With it, a configuration whose estimate is larger is refused before anything is taken."""
    placement: Literal["colocated", "separate"] = "colocated"
    """colocated: engines and trainer take turns on the same GPUs. separate: each has nodes of its own."""
    num_generation_nodes: CountOrNone = 0
    """Nodes of the engines where placement is separate; the trainer has the others."""


class WeightSyncConfig(ConfigModel):
    """The policy's new weights on their way into the engines, in every step."""

    bucket_mib: Count = 256
    """Weights are gathered and sent in buckets of about this size; two of them are in memory at a time."""
    verify_checksum: bool = False
    """Compare checksums of every tensor as the trainer has it and as each engine received it; a difference
    ends the run."""
