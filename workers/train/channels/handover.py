"""Buckets handed from process to process as objects: their bytes, or the address of memory that both can see.

On processors a bucket is an array in Ray's object store, which all processes of a machine map into their memory and
which is copied once to each other machine. On one GPU it is a CUDA IPC handle: nothing is copied at all. The latter
needs both processes on the same GPU and was never run on one.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from workers.train.channels.buckets import Bucket, Slot


@dataclass(frozen=True, slots=True)
class ArrayBucket:
    """A bucket whose bytes Ray keeps in shared memory."""

    slots: tuple[Slot, ...]
    data: np.ndarray[Any, Any]

    @classmethod
    def of(cls, bucket: Bucket) -> "ArrayBucket":
        return cls(bucket.slots, bucket.data.cpu().numpy())

    def open(self) -> Bucket:
        """Without a copy."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # and nobody writes to it
            return Bucket(self.slots, torch.from_numpy(self.data))


@dataclass(frozen=True, slots=True)
class CudaBucket:
    """A bucket that stays where it is on the GPU. It can be opened once, by one process."""

    slots: tuple[Slot, ...]
    rebuild: Any
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, bucket: Bucket) -> "CudaBucket":
        """Torch keeps the memory until the process that opened it has let go of it."""
        from torch.multiprocessing.reductions import reduce_tensor  # noqa: PLC0415

        return cls(bucket.slots, *reduce_tensor(bucket.data))

    def open(self) -> Bucket:
        return Bucket(self.slots, self.rebuild(*self.arguments))
