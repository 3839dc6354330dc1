"""A weight sync over Ray: the driver only says who sends to whom, and never holds a weight.

Four ways behind one interface. Colocated engines are handed buckets: on processors through Ray's shared memory, on the
GPU that rank 0 has as CUDA IPC handles. All others are in a broadcast group with rank 0, over NCCL on GPUs and gloo on
processors.
"""

import time
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
        actors, first = self._engines.actors, self._trainer.first
        self._calls.get_all(ENGINE, [actor.receives.remote(verify=self._verify) for actor in actors])
        handover = "cuda" if on_gpus and self._handed else "array"
        self._get_trainer(first.sends.remote(handover, len(self._handed)))
        if not self._grouped:
            return
        host, port = self._get_trainer(first.open.remote())
        meeting = Meeting(host, port, 1 + len(self._grouped), "nccl" if on_gpus else "gloo")
        joins = {index: actors[index].join.remote(meeting, rank) for rank, index in enumerate(self._grouped, 1)}
        sender = first.join.remote(meeting)
        self._get_engines(joins)
        self._get_trainer(sender)

    def _send(self, part: Part) -> Sent:
        actors, first = self._engines.actors, self._trainer.first
        others = {rank: actor.walk_through.remote(part) for rank, actor in enumerate(self._trainer.actors) if rank}
        receiving = {index: actors[index].receive.remote(part) for index in self._grouped}
        self._get_engines({index: actors[index].begin.remote(part) for index in self._handed})
        self._hand_over(first.send, part, others, receiving)
        ended = {index: actors[index].end.remote() for index in self._handed}
        sent: Sent = self._get_trainer(first.sent.remote())
        for rank, other in others.items():
            self._calls.get(f"{TRAINER} {rank}", other)
        self._check(sent, self._get_engines(ended) | self._get_engines(receiving))
        return sent

    def _hand_over(self, send: Any, part: Part, others: dict[int, Any], receiving: dict[int, Any]) -> None:
        """Each bucket to the engines that are handed some; the next but one is not made before they have taken it."""
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": 1 + _BUCKETS_AHEAD}
        stream = send.options(**options).remote(part)
        beside = [(f"{TRAINER} {rank}", other) for rank, other in others.items()]
        beside += [(f"{ENGINE} {index}", reference) for index, reference in receiving.items()]
        taken: dict[int, Any] = {}
        for bucket in self._calls.stream_references(f"{TRAINER} 0", stream, beside):
            if not self._handed:
                self._get_trainer(bucket)  # nobody else would notice, were it an error
            self._get_engines(taken)
            taken = {
                index: self._engines.actors[index].put.remote(bucket, copy) for copy, index in enumerate(self._handed)
            }
        self._get_engines(taken)

    def _check(self, sent: Sent, received: dict[int, Manifest]) -> None:
        if self._verify:
            for index, manifest in received.items():
                compare(sent.manifest, manifest, f"{ENGINE} {index}")

    def _get_trainer(self, reference: Any) -> Any:
        return self._calls.get(f"{TRAINER} 0", reference)

    def _get_engines(self, references: dict[int, Any]) -> dict[int, Any]:
        """By engine."""
        return {index: self._calls.get(f"{ENGINE} {index}", reference) for index, reference in references.items()}
