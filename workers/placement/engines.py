"""Rollout engines in processes of their own, and their stand-in that the loop talks to."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import torch

from contract.config import RunConfig
from workers.placement.balance import local_rows, merge_results, pieces
from workers.placement.factories import build_engine
from workers.placement.groups import Places
from workers.placement.weight_ends import Meeting, ReceivingEnd
from workers.process_log import Process
from workers.ray_calls import RayCalls
from workers.rollout.engine import RolloutResult, SamplingParams
from workers.seeds import derive_seed
from workers.train.channels.checksum import Manifest
from workers.train.weight_sync import Part

WHO = "Rollout engine"


@ray.remote
class RolloutActor:
    """One engine."""

    def __init__(self, devices: Sequence[str] = ()) -> None:
        """devices: GPUs of others that it may use, where Ray gave it none of its own."""
        if devices:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)  # nothing has asked CUDA for them yet
        torch.set_num_threads(1)
        self._engine: Any = None
        self._weights = ReceivingEnd(verify=False)

    def ready(self) -> Process:
        """Answers once the process runs."""
        return Process.this(ray.util.get_node_ip_address())

    def build(self, config_json: str, policy_folder: str, draft_folder: str | None) -> None:
        """Make the engine for the policy and the draft of two folders, and put the weights in place."""
        if self._engine is not None:
            self._engine.close()
        config = RunConfig.model_validate_json(config_json)
        self._engine = build_engine(config, Path(policy_folder), Path(draft_folder) if draft_folder else None)

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """A method of the engine."""
        return getattr(self._engine, method)(*arguments, **named)

    def receives(self, *, verify: bool) -> None:
        """How weights come from now on."""
        self._weights = ReceivingEnd(verify=verify)

    def join(self, meeting: Meeting, rank: int) -> None:
        """Weights will come by broadcast."""
        self._weights.join(meeting, rank, ray.util.get_node_ip_address())

    def receive(self, part: Part) -> Manifest:
        """One update by broadcast."""
        return self._weights.receive(self._engine, part)

    def begin(self, part: Part) -> None:
        """One update in buckets that are handed in."""
        self._weights.begin(self._engine, part)

    def put(self, buckets: Any, index: int) -> None:
        self._weights.put(buckets, index)

    def end(self) -> Manifest:
        return self._weights.end()


class RemoteEngines:
    """Engines in other processes as one RolloutEngine."""

    def __init__(self, actors: Sequence[Any], calls: RayCalls, max_batch_size: int) -> None:
        """actors: may be filled until the first call."""
        self.actors = actors
        self._calls, self._max_batch_size = calls, max_batch_size

    def build(self, config: RunConfig, policy: Path, draft: Path | None) -> None:
        """Make every engine anew, with the weights of these folders."""
        folders = (str(policy), str(draft) if draft else None)
        builds = [actor.build.remote(config.model_dump_json(), *folders) for actor in self.actors]
        self._calls.get_all(WHO, builds)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        params: SamplingParams,
        *,
        speculate: bool = True,
        record_rounds_of: Sequence[int] = (),
        evidence_of: Sequence[int] = (),
        remember: bool = True,
    ) -> RolloutResult:
        """Prompts are handed out in pieces, the next one to whichever engine is free.

        Each piece is drawn with a seed of its own, so that equal prompts do not draw equal responses, and so that it
        does not matter which engine it falls to.
        """
        shares = pieces(len(prompts), len(self.actors), -(-self._max_batch_size // num_samples))
        work = _Work(self._calls, len(self.actors))
        for share in shares:
            engine = work.free_engine()
            reference = self.actors[engine].call.remote(
                "generate",
                [prompts[i] for i in share],
                num_samples,
                replace(params, seed=derive_seed(params.seed, "prompts", share.start)),
                speculate=speculate,
                record_rounds_of=local_rows(record_rounds_of, share, num_samples),
                evidence_of=local_rows(evidence_of, share, num_samples),
                remember=remember,
            )
            work.begin(engine, reference)
        return merge_results(shares, work.results(), max(work.busy_s))


class _Work:
    """Which engine works on which piece. Pieces are numbered as they begin."""

    def __init__(self, calls: RayCalls, num_engines: int) -> None:
        self.busy_s = [0.0] * num_engines
        """Time that each engine has spent generating."""
        self._calls = calls
        self._references: dict[int, Any] = {}
        self._pieces: dict[int, int] = {}
        self._results: list[RolloutResult | None] = []

    def free_engine(self) -> int:
        """One without work, after waiting for one where all have some."""
        free = [engine for engine in range(len(self.busy_s)) if engine not in self._references]
        return free[0] if free else self._collect()

    def begin(self, engine: int, reference: Any) -> None:
        self._references[engine], self._pieces[engine] = reference, len(self._results)
        self._results.append(None)

    def results(self) -> list[RolloutResult]:
        """Of all pieces, when they are there."""
        while self._references:
            self._collect()
        return [result for result in self._results if result is not None]

    def _collect(self) -> int:
        """Take the result of an engine that is done; which one it is."""
        engine = self._calls.first(self._references)
        assert engine is not None
        result: RolloutResult = self._calls.get(f"{WHO} {engine}", self._references.pop(engine))
        self._results[self._pieces[engine]] = result
        self.busy_s[engine] += result.generation_s
        return engine


def start_engines(config: RunConfig, places: Places, trainers: Sequence[Process]) -> list[Any]:
    """Start the engines' processes. trainers: by rank, needed where engines use the GPUs of trainers."""
    actors = []
    for index, seat in enumerate(places.layout.engines):
        devices = [device for rank in seat.shares_gpus_of for device in trainers[rank].devices]
        options = places.options(f"engine-{index}", seat)
        actors.append(RolloutActor.options(**options).remote(devices))  # type: ignore[attr-defined]
    return actors
