"""Metrics of several machines; the cluster is Ray's own, of one machine and a second one that is made up beside it."""

from contract.telemetry.metrics import MAX_GPUS, MAX_NODES, METRICS
from workers.telemetry.cluster_hardware import hardware_metrics
from workers.telemetry.hardware import GpuReading, NodeReading


def _gpu(busy: float) -> GpuReading:
    return GpuReading("NVIDIA H200", busy, 100 * busy, 700 * busy)


def test_gpus_are_counted_over_all_machines() -> None:
    metrics = hardware_metrics([NodeReading(0.5, 8.0, [_gpu(0.1), _gpu(0.2)]), NodeReading(0.25, 4.0, [_gpu(0.6)])])
    assert metrics["hardware/node_1_cpu_fraction"] == 0.25
    assert metrics["hardware/gpu_2_utilization_fraction"] == 0.6
    assert metrics["hardware/gpu_utilization_mean_fraction"] == (0.1 + 0.2 + 0.6) / 3
    assert metrics["hardware/gpu_utilization_min_fraction"] == 0.1
    assert metrics["hardware/gpu_memory_max_gib"] == 60
    assert metrics["hardware/gpu_power_w"] == 70 + 140 + 420


def test_a_machine_that_gave_nothing_keeps_its_number() -> None:
    metrics = hardware_metrics([None, NodeReading(0.5, 8.0)])
    assert set(metrics) == {"hardware/node_1_cpu_fraction", "hardware/node_1_memory_gib"}


def test_large_clusters_are_summed_up_where_they_have_no_series_of_their_own() -> None:
    metrics = hardware_metrics([NodeReading(0.5, 8.0, [_gpu(0.5)] * 8)] * (MAX_NODES + 8))
    assert metrics["hardware/gpu_power_w"] == 350 * 8 * (MAX_NODES + 8)
    assert f"hardware/gpu_{MAX_GPUS - 1}_power_w" in metrics
    assert set(metrics) <= METRICS.keys()
