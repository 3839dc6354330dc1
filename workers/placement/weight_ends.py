"""The two ends of a weight sync, as the trainer's and the engines' processes run them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from contract.config.resources import WeightSyncConfig
from workers.train.channels.broadcast import Broadcast, Transport, open_store
from workers.train.channels.buckets import Bucket, pack
from workers.train.channels.checksum import Manifest, recorded
from workers.train.channels.handover import ArrayBucket, CudaBucket
from workers.train.channels.inbox import Inbox
from workers.train.weight_sync import Part, WeightSource, WeightTarget

_MIB = 2**20

Handover = Literal["array", "cuda"]


@dataclass(frozen=True, slots=True)
class Sent:
    """What one export was."""

    num_bytes: int
    num_buckets: int
    manifest: Manifest
    """Empty where nothing is to be verified."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where and how a broadcast group meets."""

    host: str
    port: int
    size: int
    transport: Transport


class SendingEnd:
    """At the trainer's rank 0. Each bucket is broadcast to the group, if there is one, and yielded for those who are
    not in it."""

    def __init__(self, config: WeightSyncConfig, handover: Handover, num_handed: int) -> None:
        """num_handed: engines that each yielded item is handed to; 0 yields nothing but a sign of life."""
        self._config, self._handover, self._num_handed = config, handover, num_handed
        self._broadcast: Broadcast | None = None
        self._store: Any = None
        self.sent: Sent | None = None

    def open(self, host: str) -> int:
        """The port of the group's store."""
        self._store = open_store(host)
        return self._store.port

    def join(self, meeting: Meeting) -> None:
        """Returns when every engine of the group has joined, too."""
        self._broadcast = Broadcast(self._store, 0, meeting.size, meeting.host, meeting.transport)

    def send(self, source: WeightSource, part: Part) -> Iterator[list[ArrayBucket | CudaBucket]]:
        """All buckets of a part, one copy for each engine that opens one where copies can be opened only once."""
        self.sent = None
        manifest: Manifest = {}
        num_bytes = num_buckets = 0
        weights = source.export_weights(part)
        if self._config.verify_checksum:
            weights = recorded(weights, manifest)
        device = torch.device("cuda") if self._handover == "cuda" else None
        for bucket in pack(weights, self._config.bucket_mib * _MIB, device):
            if self._broadcast is not None:
                self._broadcast.send(bucket)
            yield self._handed(bucket)
            num_bytes += len(bucket.data)
            num_buckets += 1
        if self._broadcast is not None:
            self._broadcast.end()
        self.sent = Sent(num_bytes, num_buckets, manifest)

    def _handed(self, bucket: Bucket) -> list[ArrayBucket | CudaBucket]:
        if self._handover == "cuda":
            return [CudaBucket.of(bucket) for _ in range(self._num_handed)]
        return [ArrayBucket.of(bucket)] if self._num_handed else []


class ReceivingEnd:
    """At an engine."""

    def __init__(self, *, verify: bool) -> None:
        self._verify = verify
        self._broadcast: Broadcast | None = None
        self._inbox: Inbox | None = None

    def join(self, meeting: Meeting, rank: int, host: str) -> None:
        self._broadcast = Broadcast.join(meeting.host, meeting.port, rank, meeting.size, host, meeting.transport)

    def receive(self, target: WeightTarget, part: Part) -> Manifest:
        """A whole update from the group; what arrived, where that is verified."""
        assert self._broadcast is not None
        manifest: Manifest = {}
        weights = (named for bucket in self._broadcast.receive() for named in bucket.tensors())
        target.update_weights(part, recorded(weights, manifest) if self._verify else weights)
        return manifest

    def begin(self, target: WeightTarget, part: Part) -> None:
        """Buckets will be handed in by put()."""
        self._inbox = Inbox(target, part, verify=self._verify)

    def put(self, buckets: list[ArrayBucket | CudaBucket], index: int) -> None:
        """index: which of a bucket's copies is for this engine."""
        assert self._inbox is not None
        self._inbox.put(buckets[index % len(buckets)].open())

    def end(self) -> Manifest:
        """The update begun is complete; what arrived, where that is verified."""
        assert self._inbox is not None
        inbox, self._inbox = self._inbox, None
        return inbox.close()
