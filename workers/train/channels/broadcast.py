"""Buckets from the trainer's rank 0 to engines on other machines or GPUs, by a collective broadcast.

A group of its own, apart from those of Megatron and vLLM: gloo between processors, NCCL between GPUs (never run on
one). What is in a bucket travels through the group's store, the bytes by the broadcast.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Literal

import torch
import torch.distributed as dist

from workers.train.channels.buckets import Bucket, Slot

Transport = Literal["gloo", "nccl"]

_TIMEOUT = timedelta(minutes=30)
"""So long may one bucket take to be gathered and sent. Who is dead is noticed sooner, by Ray."""
_END = b"end"


def open_store(host: str) -> dist.TCPStore:
    """The store of a new group, in the sender's process, which every member of the group must be able to reach."""
    return dist.TCPStore(host, 0, None, is_master=True, wait_for_workers=False, timeout=_TIMEOUT)


class Broadcast:
    """One member. Rank 0 sends, and all others receive the same."""

    def __init__(self, store: dist.Store, rank: int, size: int, host: str, transport: Transport) -> None:
        """host: this process's own address, by which the others reach it. Returns when all members are there."""
        self._store, self._rank, self._number = dist.PrefixStore("buckets", store), rank, 0
        self._begin, self._is_over = 0, False
        self._device = torch.device("cuda" if transport == "nccl" else "cpu")
        self._options = dist.BroadcastOptions()
        self._options.rootRank = self._options.rootTensor = 0
        self._group = _group(dist.PrefixStore("group", store), rank, size, host, transport)

    @classmethod
    def join(
        cls, store_host: str, store_port: int, rank: int, size: int, host: str, transport: Transport
    ) -> "Broadcast":
        """As a receiver, given where the sender opened the store."""
        store = dist.TCPStore(store_host, store_port, None, is_master=False, timeout=_TIMEOUT)
        return cls(store, rank, size, host, transport)

    def send(self, bucket: Bucket) -> None:
        """Returns when the receivers have it, or will from the network. A new update begins when all have ended the
        last."""
        self._forget_last_update()
        slots = [asdict(slot) for slot in bucket.slots]
        self._describe(json.dumps({"num_bytes": len(bucket.data), "slots": slots}).encode())
        self._exchange(bucket.data.to(self._device))

    def end(self) -> None:
        """There are no more buckets in this update."""
        self._describe(_END)
        self._is_over = True

    def receive(self) -> Iterator[Bucket]:
        """The buckets of one update, each in memory of its own."""
        while (description := self._next_description()) != _END:
            told = json.loads(description)
            data = torch.empty(told["num_bytes"], dtype=torch.uint8, device=self._device)
            self._exchange(data)
            yield Bucket(tuple(Slot(**slot | {"shape": tuple(slot["shape"])}) for slot in told["slots"]), data)

    def _forget_last_update(self) -> None:
        if self._is_over:
            for number in range(self._begin, self._number):
                self._store.delete_key(str(number))
            self._begin, self._is_over = self._number, False

    def _describe(self, description: bytes) -> None:
        self._store.set(str(self._number), description)
        self._number += 1

    def _next_description(self) -> bytes:
        description = self._store.get(str(self._number))
        self._number += 1
        return description

    def _exchange(self, data: torch.Tensor) -> None:
        self._group.broadcast([data], self._options).wait()
        if data.is_cuda:
            torch.cuda.synchronize()


def _group(store: dist.Store, rank: int, size: int, host: str, transport: Transport) -> dist.Backend:
    if transport == "nccl":
        return dist.ProcessGroupNCCL(store, rank, size, dist.ProcessGroupNCCL.Options())
    options = dist.ProcessGroupGloo._Options()
    options._timeout = _TIMEOUT
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=host)]
    return dist.ProcessGroupGloo(store, rank, size, options)
