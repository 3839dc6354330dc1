"""What a machine is busy with: CPU and memory by psutil, GPUs by NVML where there are any."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import pynvml

_GIB = 2.0**30
INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU."""

    name: str
    utilization_fraction: float
    """Share of the time in which a kernel ran."""
    memory_gib: float
    power_w: float


@dataclass(frozen=True, slots=True)
class NodeReading:
    """One machine."""

    cpu_fraction: float
    memory_gib: float
    gpus: list[GpuReading] = field(default_factory=list)


def read_gpus() -> list[GpuReading]:
    """All GPUs of this machine now; empty without NVIDIA's driver."""
    try:
        pynvml.nvmlInit()  # counts its calls: again costs next to nothing
        return [_read_gpu(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []


def _read_gpu(handle: object) -> GpuReading:
    name = pynvml.nvmlDeviceGetName(handle)
    return GpuReading(
        name.decode() if isinstance(name, bytes) else name,
        pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        pynvml.nvmlDeviceGetMemoryInfo(handle).used / _GIB,
        pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    )


def read_node(gpus: Callable[[], list[GpuReading]] = read_gpus) -> NodeReading:
    """This machine now; its CPU's share is that since the last call in this thread, 0 at the first."""
    return NodeReading(psutil.cpu_percent() / 100, psutil.virtual_memory().used / _GIB, gpus())


def over(readings: Sequence[NodeReading]) -> NodeReading:
    """Means, and of memory the most, over readings of one machine one after another. At least one."""
    gpus = [
        GpuReading(
            each[0].name,
            _mean([gpu.utilization_fraction for gpu in each]),
            max(gpu.memory_gib for gpu in each),
            _mean([gpu.power_w for gpu in each]),
        )
        for each in zip(*(reading.gpus for reading in readings), strict=False)
    ]
    return NodeReading(
        _mean([reading.cpu_fraction for reading in readings]), max(reading.memory_gib for reading in readings), gpus
    )


class NodeSampler:
    """Reads this machine at an interval, in a thread that ends with the process."""

    def __init__(self, interval_s: float = INTERVAL_S, read: Callable[[], NodeReading] = read_node) -> None:
        self._interval_s, self._read = interval_s, read
        self._readings: list[NodeReading] = []
        self._lock = threading.Lock()
        self._wake, self._fresh = threading.Event(), threading.Event()
        threading.Thread(target=self._sample, name="hardware", daemon=True).start()

    def take(self) -> NodeReading | None:
        """Over all readings since the last call, or one made now; None where that fails or takes an interval."""
        if not (readings := self._pop()):
            self._fresh.clear()
            self._wake.set()
            self._fresh.wait(self._interval_s)
            readings = self._pop()
        return over(readings) if readings else None

    def _pop(self) -> list[NodeReading]:
        with self._lock:
            readings, self._readings = self._readings, []
        return readings

    def _sample(self) -> None:
        self._read()  # psutil counts from its first call
        while True:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            with suppress(OSError, psutil.Error):  # a reading that fails is left out
                reading = self._read()
                with self._lock:
                    self._readings.append(reading)
                self._fresh.set()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
