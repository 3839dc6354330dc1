"""The regions of a round on tensors that keep their place, so that a CUDA device replays each as one graph.

A region is a function of tensors whose first dimension is rows. It runs on buffers of its own, for numbers of rows and
spans rounded up to a few sizes. Rows added thus stand at position 0 of cache rows that no sequence has, so what they
write there is read by nobody. Inputs and results lie outside the graphs' memory pool, which holds only what comes up in
between: all graphs share it, in whatever order they run. Random numbers are drawn outside, so a region is a pure
function of its buffers and the caches, and the same numbers give the same tokens captured or not.

Where nothing is captured, on a processor or where a device refuses, a region's function runs on the same buffers.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from workers.algo.acceptance import Randomness
from workers.model.config import ModelConfig
from workers.rollout.operations import Operations
from workers.rollout.torch_operations import TorchKvCache, TorchOperations

log = logging.getLogger(__name__)

Function = Callable[..., tuple[Tensor | None, ...]]

_MAX_REGIONS = 512
"""Kept at most; those unused for longest go first. A graph of some hundred kernels takes a few MiB of a device."""
_SPAN_BLOCK = 64
_CAPACITY_BLOCK = 256


def bucket(number: int) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is no smaller: at most a third is padding."""
    power = 1 << (number - 1).bit_length()
    return power * 3 // 4 if power >= 4 and number <= power * 3 // 4 else power


class Buffers:
    """Tensors by name. One that has to grow is replaced, at least doubled: who has the old one keeps it."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._flat: dict[str, Tensor] = {}

    def view(self, name: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
        """Zeros at first, later whatever the last user of the name left."""
        numel = shape.numel()
        flat = self._flat.get(name)
        if flat is None or flat.numel() < numel or flat.dtype != dtype:
            size = 1 << max(numel - 1, 0).bit_length()
            flat = self._flat[name] = torch.zeros(size, dtype=dtype, device=self.device)
        return flat[:numel].view(shape)


class Region:
    """A function at one size, with its buffers, run as it is the first time and captured the second."""

    def __init__(self, name: str, inputs: Sequence[Tensor | None], num_rows: int, buffers: Buffers) -> None:
        self.name, self.buffers = name, buffers
        self.inputs = [
            None if x is None else buffers.view(f"{name} {i}", torch.Size((num_rows, *x.shape[1:])), x.dtype)
            for i, x in enumerate(inputs)
        ]
        self.outputs: list[Tensor | None] | None = None
        self.function: Function | None = None
        self.graph: torch.cuda.CUDAGraph | None = None

    def fill(self, inputs: Sequence[Tensor | None]) -> None:
        """Put the inputs in their place, zeros behind their rows."""
        for buffer, x in zip(self.inputs, inputs, strict=True):
            if buffer is not None and x is not None:
                buffer[: len(x)].copy_(x)
                if len(x) < len(buffer):
                    buffer[len(x) :].zero_()

    def compute(self, function: Function) -> None:
        """Run the function on the inputs and put what it gives in its place."""
        results = function(*self.inputs)
        if self.outputs is None:
            self.outputs = [
                None if y is None else self.buffers.view(f"{self.name} result {i}", y.shape, y.dtype)
                for i, y in enumerate(results)
            ]
        for buffer, y in zip(self.outputs, results, strict=True):
            if buffer is not None and y is not None:
                buffer.copy_(y)

    def capture(self, function: Function, pool: Any) -> None:
        """Raises RuntimeError where the device refuses, and leaves the stream as it was."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                self.compute(function)
        finally:
            torch.cuda.set_stream(stream)
        self.graph = graph


class StaticOperations(TorchOperations):
    """TorchOperations whose regions and caches keep their place from call to call."""

    is_static: ClassVar[bool] = True

    def __init__(
        self, eps: float, dtype: torch.dtype, device: torch.device, *, is_captured: bool | None = None
    ) -> None:
        """is_captured: None for wherever there are CUDA graphs."""
        super().__init__(eps, dtype, device)
        self.is_captured = device.type == "cuda" if is_captured is None else is_captured
        self._buffers = Buffers(device)
        self._regions: OrderedDict[Hashable, Region] = OrderedDict()
        self._caches: dict[str, TorchKvCache] = {}
        self._forget_regions()

    def allocate_cache(
        self, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> TorchKvCache:
        return TorchKvCache(
            *(config, num_layers, num_rows, capacity),
            transpose_keys=False,
            device=self.device,
            dtype=self.dtype,
            is_fused=True,
        )

    def keep_cache(
        self, name: str, config: ModelConfig, num_layers: int, num_rows: int, capacity: int, *, is_verified: bool
    ) -> TorchKvCache:
        """The same one call after call, made anew only to grow: regions point to it."""
        cache, rows = self._caches.get(name), bucket(num_rows)
        if cache is not None and cache.num_rows >= rows and cache.capacity >= capacity:
            cache.clear()
            return cache
        if cache is not None:
            rows, capacity = max(rows, cache.num_rows), max(capacity, cache.capacity)
            del self._caches[name], cache
        self._forget_regions()
        capacity = bucket(-(-capacity // _CAPACITY_BLOCK)) * _CAPACITY_BLOCK
        made = self.allocate_cache(config, num_layers, rows, capacity, is_verified=is_verified)
        self._caches[name] = made
        return made

    def round_span(self, span: int) -> int:
        return bucket(-(-span // _SPAN_BLOCK)) * _SPAN_BLOCK

    def randomness(self, num_rows: int, num_draws: int, generator: torch.Generator) -> Randomness:
        return torch.rand(num_rows, num_draws, dtype=torch.float64, device=self.device, generator=generator)

    def region(
        self, name: str, function: Function, inputs: Sequence[Tensor | None], settings: Hashable = ()
    ) -> tuple[Tensor | None, ...]:
        first = next(x for x in inputs if x is not None)
        num_rows = bucket(len(first))
        shapes = tuple(None if x is None else (x.shape[1:], x.dtype) for x in inputs)
        key = (name, num_rows, shapes, settings)
        region = self._regions.get(key)
        if region is None:
            region = self._regions[key] = Region(name, inputs, num_rows, self._buffers)
            if len(self._regions) > _MAX_REGIONS:
                self._regions.popitem(last=False)
        self._regions.move_to_end(key)
        region.fill(inputs)
        self._run(region, function)
        assert region.outputs is not None
        return tuple(None if y is None else y[: len(first)] for y in region.outputs)

    def _forget_regions(self) -> None:
        """Their memory pool goes with the last graph in it, and its handle cannot be used again."""
        self._regions.clear()
        self._pool = torch.cuda.graph_pool_handle() if self.is_captured else None

    def _run(self, region: Region, function: Function) -> None:
        if self.is_captured and region.graph is None:
            Operations.num_first_runs += 1
            if region.outputs is not None:
                self._try_to_capture(region, function)
        if region.graph is not None:
            region.graph.replay()
            return
        if not self.is_captured:
            # What came first is repeated, as a graph would: what is missing in a key shows on a processor too.
            region.function = region.function or function
        region.compute(region.function or function)

    def _try_to_capture(self, region: Region, function: Function) -> None:
        try:
            region.capture(function, self._pool)
        except RuntimeError as error:
            log.warning("The device captures no graph of %s, so rounds take longer: %s", region.name, error)
            self.is_captured = False
