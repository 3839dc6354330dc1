"""A weight sync over Ray: the driver only says who sends to whom, and never holds a weight.

Four ways behind one interface. Colocated engines are handed buckets: on processors through Ray's shared memory, on the
GPU that rank 0 has as CUDA IPC handles. All others are in a broadcast group with rank 0, over NCCL on GPUs and gloo on
processors.
"""

import time
from collections.abc import Sequence
from typing import Any

from contract.config import RunConfig
from workers.placement.engines import WHO as ENGINE
from workers.placement.engines import RemoteEngines
from workers.placement.layout import Layout, trains_on_gpus
from workers.placement.trainers import WHO as TRAINER
from workers.placement.trainers import RemoteTrainer
from workers.placement.weight_ends import Meeting, Sent
from workers.ray_calls import RayCalls
from workers.train.channels.checksum import Manifest, compare
from workers.train.weight_sync import Part

_BUCKETS_AHEAD = 1
"""Buckets that are made while one is taken up."""


def engines_handed_buckets(config: RunConfig, layout: Layout) -> list[int]:
    """Which engines are handed buckets as objects; the others are in the broadcast group."""
    if config.resources.placement == "separate":
        return []
    if not trains_on_gpus(config):
        return list(range(len(layout.engines)))
    return [index for index, seat in enumerate(layout.engines) if 0 in seat.shares_gpus_of]


class WeightTransfer:
    """Brings the trainer's weights into all engines; made once both are built."""

    def __init__(
        self,
        config: RunConfig,
        layout: Layout,
        trainer: RemoteTrainer,
        engines: RemoteEngines,
        calls: RayCalls,
        *,
        has_draft: bool,
    ) -> None:
        self._trainer, self._engines, self._calls = trainer, engines, calls
        self._verify = config.weight_sync.verify_checksum
        self._parts: tuple[Part, ...] = ("policy", "draft") if has_draft else ("policy",)
        self._handed = engines_handed_buckets(config, layout)
        self._grouped = [index for index in range(len(layout.engines)) if index not in self._handed]
        self._set_up(on_gpus=trains_on_gpus(config))

    def sync(self) -> dict[str, float]:
        """See WeightSync. Raises WeightMismatchError where verification finds a difference."""
        begun = time.perf_counter()
        sent = [self._send(part) for part in self._parts]
        return {
            "weight_sync/transfer_s": time.perf_counter() - begun,
            "weight_sync/size_bytes": float(sum(one.num_bytes for one in sent)),
            "weight_sync/num_buckets": float(sum(one.num_buckets for one in sent)),
        }

    def _set_up(self, *, on_gpus: bool) -> None:
        actors = self._engines.actors
        self._calls.get_all(ENGINE, [actor.receives.remote(verify=self._verify) for actor in actors])
        handover = "cuda" if on_gpus and self._handed else "array"
        self._get_trainer(self._trainer.first.sends.remote(handover, len(self._handed)))
        if not self._grouped:
            return
        host, port = self._get_trainer(self._trainer.first.open.remote())
        meeting = Meeting(host, port, 1 + len(self._grouped), "nccl" if on_gpus else "gloo")
        joins = [actors[index].join.remote(meeting, rank) for rank, index in enumerate(self._grouped, 1)]
        sender = self._trainer.first.join.remote(meeting)
        self._get_engines(self._grouped, joins)
        self._get_trainer(sender)

    def _send(self, part: Part) -> Sent:
        actors, first = self._engines.actors, self._trainer.first
        others = [actor.walk_through.remote(part) for actor in self._trainer.actors[1:]]
        receiving = [actors[index].receive.remote(part) for index in self._grouped]
        begun = [actors[index].begin.remote(part) for index in self._handed]
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": 1 + _BUCKETS_AHEAD}
        stream = first.send.options(**options).remote(part)
        beside = [(f"{TRAINER} {rank}", other) for rank, other in enumerate(others, 1)]
        beside += [(f"{ENGINE} {index}", reference) for index, reference in zip(self._grouped, receiving, strict=True)]
        self._get_engines(self._handed, begun)
        taken: list[Any] = []
        for bucket in self._calls.stream_references(f"{TRAINER} 0", stream, beside):
            self._get_engines(self._handed, taken)
            taken = [actors[index].put.remote(bucket, copy) for copy, index in enumerate(self._handed)]
        self._get_engines(self._handed, taken)
        ended = [actors[index].end.remote() for index in self._handed]
        sent: Sent = self._get_trainer(first.sent.remote())
        for who, reference in beside[: len(others)]:
            self._calls.get(who, reference)
        self._check(sent, self._handed, self._get_engines(self._handed, ended))
        self._check(sent, self._grouped, self._get_engines(self._grouped, receiving))
        return sent

    def _check(self, sent: Sent, engines: Sequence[int], received: Sequence[Manifest]) -> None:
        if self._verify:
            for index, manifest in zip(engines, received, strict=True):
                compare(sent.manifest, manifest, f"{ENGINE} {index}")

    def _get_trainer(self, reference: Any) -> Any:
        return self._calls.get(f"{TRAINER} 0", reference)

    def _get_engines(self, indices: Sequence[int], references: Sequence[Any]) -> list[Any]:
        return [
            self._calls.get(f"{ENGINE} {index}", reference)
            for index, reference in zip(indices, references, strict=False)
        ]
