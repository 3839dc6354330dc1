"""Whether a cluster has room for a run. A pure rule: no Ray, no database."""

from collections import Counter
from collections.abc import Sequence

from backend.launcher.jobs import Node
from contract.config.needs import Needs, gpus


class NoRoomError(Exception):
    """The cluster is too small, whoever else uses it."""


class BusyError(Exception):
    """The cluster is large enough, and others use it."""


def check_room(cluster: str, needs: Needs, nodes: Sequence[Node] | None) -> None:
    """Raises NoRoomError or BusyError, with what is missing. None for the nodes: nobody knows, so that Ray is to
    judge."""
    if nodes is None or not needs.gpus_per_node:
        return
    total = sorted((node.gpus for node in nodes if node.gpus), reverse=True)
    if sum(count >= needs.gpus_per_node for count in total) < needs.num_nodes:
        raise NoRoomError(
            f"The run needs {needs.in_words()}, and cluster {cluster} has {_in_words(total)}: lower resources, or "
            "choose another cluster."
        )
    free = sorted((node.free_gpus for node in nodes if node.free_gpus), reverse=True)
    if sum(count >= needs.gpus_per_node for count in free) < needs.num_nodes:
        raise BusyError(
            f"Waits for GPUs of cluster {cluster}: the run needs {needs.in_words()}, free are {_in_words(free)}."
        )


def _in_words(counts: Sequence[float]) -> str:
    """`3 nodes with 8 GPUs and 1 node with 4 GPUs`."""
    groups = [
        f"{number} {'node' if number == 1 else 'nodes'} with {gpus(count)}" for count, number in Counter(counts).items()
    ]
    return " and ".join(groups) or "no GPU"
