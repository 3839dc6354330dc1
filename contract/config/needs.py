"""What a run takes of its cluster, for who hands it over to one."""

from dataclasses import dataclass

from contract.config.run import RunConfig


@dataclass(frozen=True, slots=True)
class Needs:
    """All of it at the same time."""

    num_nodes: int
    gpus_per_node: int
    """0 where it runs on processors, of which it takes what there is."""

    def in_words(self) -> str:
        nodes = f"{self.num_nodes} {'node' if self.num_nodes == 1 else 'nodes'}"
        return f"{nodes} with {gpus(self.gpus_per_node)}{' each' if self.num_nodes > 1 else ''}"


NO_NEEDS = Needs(1, 0)
"""Of a configuration that only an earlier version understands."""


def needs(config: RunConfig) -> Needs:
    return Needs(config.resources.num_nodes, config.resources.gpus_per_node)


def gpus(count: float) -> str:
    """In words."""
    return f"{count:g} {'GPU' if count == 1 else 'GPUs'}"
