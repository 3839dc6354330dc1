"""The hardware of all machines of a Ray cluster, as metrics of a step."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contract.sizing.peaks import peak_tflops
from contract.telemetry.metrics import MAX_GPUS, MAX_NODES
from workers.telemetry.hardware import GpuReading, NodeReading, NodeSampler, read_gpus

_PATIENCE_S = 5.0
"""A machine that does not answer in this time is left out of the step."""


@ray.remote(num_cpus=0, max_restarts=-1)
class _SamplerActor:
    """Samples the machine that it runs on."""

    def __init__(self) -> None:
        self._sampler = NodeSampler()

    def take(self) -> NodeReading | None:
        return self._sampler.take()

    def gpu_names(self) -> list[str]:
        return [gpu.name for gpu in read_gpus()]


class ClusterHardware:
    """A sampler in this process, and an actor on every other machine of the cluster."""

    def __init__(self) -> None:
        self._sampler = NodeSampler()
        here = ray.get_runtime_context().get_node_id()
        nodes = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: node["NodeManagerAddress"])
        self._actors = [None if node["NodeID"] == here else _start(node["NodeID"]) for node in nodes]

    def metrics(self) -> dict[str, float]:
        """Over the time since the last call, by catalogue name; a machine that does not answer has none."""
        found = self._ask("take")
        readings = [
            self._sampler.take() if actor is None else found.get(index) for index, actor in enumerate(self._actors)
        ]
        return hardware_metrics(readings)

    def peak_tflops(self) -> float | None:
        """Of one of the cluster's GPUs in bfloat16; None where it is not known or they are not all alike."""
        names = {gpu.name for gpu in read_gpus()}.union(*self._ask("gpu_names").values())
        peaks = {peak_tflops(name) for name in names}
        return peaks.pop() if len(peaks) == 1 else None

    def _ask(self, method: str) -> dict[int, Any]:
        """The answers of the other machines that come in time, by their numbers."""
        asked = {
            getattr(actor, method).remote(): index for index, actor in enumerate(self._actors) if actor is not None
        }
        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_PATIENCE_S) if asked else ([], [])
        answers = {}
        for reference in answered:
            with suppress(RayError):  # the machine was lost
                answers[asked[reference]] = ray.get(reference)
        return answers


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
