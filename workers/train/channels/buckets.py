"""Tensors packed into buckets of bytes, and taken out of them without a copy."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_ALIGNMENT = 16
"""Bytes; every element type can be viewed at a multiple of it."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor lies in a bucket."""

    name: str
    dtype: str
    """As torch names it, without `torch.`."""
    shape: tuple[int, ...]
    offset: int
    """Bytes from the bucket's start."""
    num_bytes: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tensors side by side in one block of memory."""

    slots: tuple[Slot, ...]
    data: Tensor
    """uint8 [bytes]."""

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor); views of the block, which lives for as long as one of them does."""
        for slot in self.slots:
            part = self.data[slot.offset : slot.offset + slot.num_bytes]
            yield slot.name, part.view(getattr(torch, slot.dtype)).view(slot.shape)


def pack(
    weights: Iterable[tuple[str, Tensor]], bucket_bytes: int, device: torch.device | None = None
) -> Iterator[Bucket]:
    """Buckets of at most bucket_bytes, in the order of the weights; a tensor that is larger has a bucket of its own.

    device: of the buckets; None leaves each where its tensors are. Nothing is taken from `weights` before a bucket with
    it is asked for, so that a bucket and the tensor behind it are all that is in memory here.
    """
    waiting: list[tuple[str, Tensor]] = []
    size = 0
    for name, tensor in weights:
        num_bytes = _aligned(tensor.numel() * tensor.element_size())
        if waiting and size + num_bytes > bucket_bytes:
            yield _packed(waiting, size, device)
            waiting, size = [], 0
        waiting.append((name, tensor))
        size += num_bytes
    if waiting:
        yield _packed(waiting, size, device)


def _packed(tensors: list[tuple[str, Tensor]], size: int, device: torch.device | None) -> Bucket:
    data = torch.empty(size, dtype=torch.uint8, device=device or tensors[0][1].device)
    slots, offset = [], 0
    for name, tensor in tensors:
        flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
        data[offset : offset + flat.numel()].copy_(flat)
        slots.append(Slot(name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), offset, flat.numel()))
        offset += _aligned(flat.numel())
    return Bucket(tuple(slots), data)


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
