import threading

import psutil
import pytest

from workers.telemetry.hardware import GpuReading, NodeReading, NodeSampler, over, read_gpus, read_node


def _gpu(busy: float, memory_gib: float, power_w: float) -> GpuReading:
    return GpuReading("NVIDIA H200", busy, memory_gib, power_w)


def test_this_machine_is_read_for_real() -> None:
    reading = read_node()
    assert 0 <= reading.cpu_fraction <= 1
    assert 0 < reading.memory_gib < psutil.virtual_memory().total / 2**30
    assert reading.gpus == read_gpus()


def test_readings_are_averaged_and_memory_is_the_most() -> None:
    readings = [
        NodeReading(0.2, 5.0, [_gpu(0.0, 10.0, 100.0), _gpu(1.0, 70.0, 600.0)]),
        NodeReading(0.4, 4.0, [_gpu(0.5, 30.0, 300.0), _gpu(1.0, 60.0, 700.0)]),
    ]
    assert over(readings) == NodeReading(
        pytest.approx(0.3),  # type: ignore[arg-type]
        5.0,
        [_gpu(0.25, 30.0, 200.0), _gpu(1.0, 70.0, 650.0)],
    )


class _Script:
    """Readings one after another; then it waits for good."""

    def __init__(self, *outcomes: NodeReading | OSError) -> None:
        self._outcomes = iter(outcomes)
        self.is_through = threading.Event()

    def read(self) -> NodeReading:
        outcome = next(self._outcomes, None)
        if isinstance(outcome, OSError):
            raise outcome
        if outcome is None:
            self.is_through.set()
            threading.Event().wait()
        return outcome


def test_a_sampler_gives_what_was_read_since_it_was_last_asked() -> None:
    # The first reading's share of the CPU counts from the beginning of time; one that fails is left out.
    script = _Script(NodeReading(0.9, 9.0), NodeReading(0.1, 1.0), OSError("no such device"), NodeReading(0.3, 2.0))
    sampler = NodeSampler(interval_s=0.001, read=script.read)
    assert script.is_through.wait(10)
    assert sampler.take() == NodeReading(pytest.approx(0.2), 2.0)  # type: ignore[arg-type]
    assert sampler.take() is None


def test_a_sampler_that_has_nothing_yet_reads_when_it_is_asked() -> None:
    sampler = NodeSampler(interval_s=60)
    assert sampler.take() is not None
    assert sampler.take() is not None
