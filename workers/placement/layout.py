"""Which process goes to which machine and GPU: a pure rule of the configuration."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from contract.config import RunConfig
from contract.config.rollout import VllmRollout
from workers.placement.factories import num_trainer_processes

_MAX_PROCESS_CPUS = 0.5
"""Engines and trainer take turns, so that together they claim less than they have threads."""
_RESOLUTION = 10_000
"""Ray counts resources in ten-thousandths."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A process's place."""

    node: int
    """Index of the machine among those of the run."""
    num_gpus: float = 0.0
    """GPUs that it claims of its machine; Ray gives it these and shows it no others."""
    shares_gpus_of: tuple[int, ...] = ()
    """Trainer ranks whose GPUs it uses without claiming any."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One placement group: a bundle a machine, all of them taken at once or none."""

    bundles: tuple[dict[str, float], ...]
    strategy: Literal["STRICT_PACK", "SPREAD", "STRICT_SPREAD"]
    process_cpus: float
    """CPUs that each process claims."""
    trainers: tuple[Seat, ...]
    """By rank."""
    engines: tuple[Seat, ...]


def plan(config: RunConfig, cluster_cpus: float) -> Layout:
    """The run's places on its machines.

    On GPUs, each training rank claims a whole one and machines are told apart strictly. Colocated engines use the GPUs
    of ranks: were both to claim halves, Ray would put two ranks on one GPU before it put an engine beside a rank.
    Engines claim GPUs where no rank is; more engines than GPUs share them evenly. On processors, processes are spread
    over as many machines as there are, each claiming a share of a CPU that lets all of them fit.
    """
    resources = config.resources
    engine_nodes, trainer_nodes = _nodes(config)
    trainers = _trainers(config, trainer_nodes)
    engines = _engines(config, engine_nodes, trainers)
    cpus = min(_MAX_PROCESS_CPUS, cluster_cpus / (len(trainers) + len(engines)))
    cpus = max(1, math.floor(cpus * _RESOLUTION)) / _RESOLUTION
    bundles = []
    for node in range(resources.num_nodes):
        num_processes = sum(seat.node == node for seat in (*trainers, *engines))
        bundle = {"CPU": round(max(1, num_processes) * cpus, 4)}
        bundles.append(bundle | {"GPU": float(resources.gpus_per_node)} if resources.gpus_per_node else bundle)
    is_strict = resources.gpus_per_node > 0
    strategy = "STRICT_PACK" if resources.num_nodes == 1 else "STRICT_SPREAD" if is_strict else "SPREAD"
    return Layout(tuple(bundles), strategy, cpus, tuple(trainers), tuple(engines))


def trains_on_gpus(config: RunConfig) -> bool:
    """A training rank computes on a GPU wherever the run takes some."""
    return config.resources.gpus_per_node > 0


def _nodes(config: RunConfig) -> tuple[range, range]:
    """(machines of the engines, machines of the trainer)."""
    num_nodes, num_generation = config.resources.num_nodes, config.resources.num_generation_nodes
    if config.resources.placement == "colocated":
        return range(num_nodes), range(num_nodes)
    return range(num_generation), range(num_generation, num_nodes)


def _trainers(config: RunConfig, nodes: range) -> list[Seat]:
    num_ranks = num_trainer_processes(config)
    if trains_on_gpus(config):
        return [Seat(nodes[rank // config.resources.gpus_per_node], 1.0) for rank in range(num_ranks)]
    return [Seat(nodes[rank * len(nodes) // num_ranks]) for rank in range(num_ranks)]


def _engines(config: RunConfig, nodes: range, trainers: list[Seat]) -> list[Seat]:
    """Engines take turns over the slots, each as many GPUs of one machine as an engine needs: the slots of ranks, whose
    GPUs are used without a claim, and those that no rank has. A slot that is neither is left free."""
    num_engines, num_per_node = config.rollout.num_engines, config.resources.gpus_per_node
    size = config.rollout.tensor_parallel_size if isinstance(config.rollout, VllmRollout) else 1
    if not num_per_node:
        return [Seat(nodes[engine * len(nodes) // num_engines]) for engine in range(num_engines)]
    num_ranks = len(trainers) if config.resources.placement == "colocated" else 0
    slots = [
        Seat(node, shares_gpus_of=tuple(gpus)) if gpus[-1] < num_ranks else Seat(node, float(size))
        for at, node in enumerate(nodes)
        for first in range(at * num_per_node, (at + 1) * num_per_node - size + 1, size)
        if (gpus := range(first, first + size))[-1] < num_ranks or gpus[0] >= num_ranks
    ]
    counts = [len(range(index, num_engines, len(slots))) for index in range(len(slots))]
    return [_shared(slots[engine % len(slots)], counts[engine % len(slots)]) for engine in range(num_engines)]


def _shared(slot: Seat, num_engines: int) -> Seat:
    """An engine's part of a slot that so many of them share."""
    return replace(slot, num_gpus=math.floor(slot.num_gpus / num_engines * _RESOLUTION) / _RESOLUTION)
