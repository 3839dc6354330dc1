"""The hardware of all machines of a Ray cluster, as metrics of a step."""

import logging
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contract.telemetry.metrics import MAX_GPUS, MAX_NODES
from workers.telemetry.hardware import GpuReading, NodeReading, NodeSampler

log = logging.getLogger(__name__)

_PATIENCE_S = 5.0
"""A machine that does not answer in this time is left out of the step."""


@ray.remote(num_cpus=0, max_restarts=-1)
class _SamplerActor:
    """Samples the machine that it runs on."""

    def __init__(self) -> None:
        self._sampler = NodeSampler()

    def take(self) -> NodeReading | None:
        return self._sampler.take()


class ClusterHardware:
    """A sampler in this process, and an actor on every other machine of the cluster."""

    def __init__(self) -> None:
        self._sampler = NodeSampler()
        here = ray.get_runtime_context().get_node_id()
        nodes = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: node["NodeManagerAddress"])
        self._actors = [None if node["NodeID"] == here else _start(node["NodeID"]) for node in nodes]

    def metrics(self) -> dict[str, float]:
        """Over the time since the last call, by catalogue name; a machine that does not answer has none."""
        asked = {actor.take.remote(): index for index, actor in enumerate(self._actors) if actor is not None}
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_PATIENCE_S) if asked else ([], [])
        found = {asked[reference]: _reading(reference) for reference in answered}
        readings = [
            self._sampler.take() if actor is None else found.get(index) for index, actor in enumerate(self._actors)
        ]
        return hardware_metrics(readings)

    def close(self) -> None:
        self._sampler.close()
        for actor in self._actors:
            if actor is not None:
                ray.kill(actor)


def hardware_metrics(nodes: Sequence[NodeReading | None]) -> dict[str, float]:
    """By catalogue name, from one reading a machine, None for one that gave none."""
    metrics: dict[str, float] = {}
    gpus: list[GpuReading] = []
    for index, node in enumerate(nodes):
        if node is not None:
            gpus += node.gpus
            if index < MAX_NODES:
                metrics[f"hardware/node_{index}_cpu_fraction"] = node.cpu_fraction
                metrics[f"hardware/node_{index}_memory_gib"] = node.memory_gib
    for index, gpu in enumerate(gpus[:MAX_GPUS]):
        metrics[f"hardware/gpu_{index}_utilization_fraction"] = gpu.utilization_fraction
        metrics[f"hardware/gpu_{index}_memory_gib"] = gpu.memory_gib
        metrics[f"hardware/gpu_{index}_power_w"] = gpu.power_w
    if gpus:
        busy = [gpu.utilization_fraction for gpu in gpus]
        metrics |= {
            "hardware/gpu_utilization_mean_fraction": sum(busy) / len(busy),
            "hardware/gpu_utilization_min_fraction": min(busy),
            "hardware/gpu_memory_max_gib": max(gpu.memory_gib for gpu in gpus),
            "hardware/gpu_power_w": sum(gpu.power_w for gpu in gpus),
        }
    return metrics


def _start(node_id: str) -> Any:
    there = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return _SamplerActor.options(scheduling_strategy=there).remote()  # type: ignore[attr-defined]


def _reading(reference: Any) -> NodeReading | None:
    try:
        reading: NodeReading | None = ray.get(reference)
    except RayError as error:
        log.debug("A machine's hardware could not be read: %s", error)
        return None
    return reading
