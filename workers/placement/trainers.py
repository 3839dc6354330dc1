"""The trainer in processes of its own, one or a group of ranks, and its stand-in that the loop talks to."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import ray
import torch
from torch import Tensor

from contract.config import RunConfig
from contract.config.drafter import TrainedDrafter
from contract.config.policy import ScratchPolicy
from workers.model.hf_checkpoint import load_policy
from workers.placement.factories import Rank, build_trainer
from workers.placement.groups import Places
from workers.placement.weight_ends import Handover, Meeting, SendingEnd, Sent
from workers.process_log import Process
from workers.ray_calls import RayCalls
from workers.train.device import training_device
from workers.train.draft_pretraining import Rollouts, pretrain_draft
from workers.train.progress import SetUpProgress
from workers.train.trainer import LogprobResult, TrainingBatch
from workers.train.warm_up import warm_up
from workers.train.weight_sync import Part

WHO = "Trainer rank"

_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}
"""Threads that wait by spinning take the CPU from the very thread they wait for once the machine is shared: with one
other busy process on two cores a step of two threads took twelve times as long."""
_STRAGGLER_S = 900.0
"""Ranks work in step; one that is so much behind another hangs."""


@ray.remote
class TrainerActor:
    """One rank of the trainer; rank 0 also runs the set-up stages that train."""

    def __init__(self, config_json: str, rank: int) -> None:
        self._config = RunConfig.model_validate_json(config_json)
        self._rank = rank
        torch.set_num_threads(self._config.trainer.num_threads)
        self._trainer: Any = None
        self._weights: SendingEnd | None = None

    def ready(self) -> Process:
        """Answers once the process runs."""
        return Process.this(ray.util.get_node_ip_address())

    def warm_up(self, folder: str) -> Iterator[SetUpProgress]:
        """Train the starting policy from scratch into a folder."""
        config = self._config
        assert isinstance(config.policy, ScratchPolicy)
        yield from warm_up(Path(folder), config.policy, config.task, config.trainer, config.seed)

    def pretrain_draft(self, folder: str, policy_folder: str, rollouts: Rollouts) -> Iterator[SetUpProgress]:
        """Train the starting draft into a folder."""
        config = self._config
        assert isinstance(config.drafter, TrainedDrafter)
        policy = load_policy(Path(policy_folder)).to(training_device())
        yield from pretrain_draft(
            Path(folder), policy, rollouts, config.drafter, trainer=config.trainer, seed=config.seed
        )

    def free_port(self) -> int:
        """One on which nothing listens now; whoever takes it first has it, so that it is to be used at once."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return probe.getsockname()[1]

    def build(self, policy_folder: str, draft_folder: str | None, rank: Rank) -> None:
        """Make this rank's part of the trainer for a policy and a draft."""
        draft = Path(draft_folder) if draft_folder else None
        self._trainer = build_trainer(self._config, Path(policy_folder), draft, rank)

    def call(self, method: str, *arguments: Any) -> Any:
        """A method of the trainer; all ranks are called, and rank 0's answer is the trainer's."""
        result = getattr(self._trainer, method)(*arguments)
        return result if self._rank == 0 else None

    def sends(self, handover: Handover, num_handed: int) -> None:
        """How weights go from now on."""
        self._weights = SendingEnd(self._config.weight_sync, handover, num_handed)

    def open(self) -> tuple[str, int]:
        """Where a broadcast group can meet."""
        assert self._weights is not None
        host = ray.util.get_node_ip_address()
        return host, self._weights.open(host)

    def join(self, meeting: Meeting) -> None:
        """Weights will go by broadcast."""
        assert self._weights is not None
        self._weights.join(meeting)

    def send(self, part: Part) -> Iterator[Any]:
        """One export, as a stream of buckets."""
        assert self._weights is not None
        yield from self._weights.send(self._trainer, part)

    def sent(self) -> Sent:
        """What the last export was."""
        assert self._weights is not None
        assert self._weights.sent is not None
        return self._weights.sent

    def walk_through(self, part: Part) -> None:
        """This rank's share of an export that rank 0 sends."""
        for _ in self._trainer.export_weights(part):
            pass


class RemoteTrainer:
    """A PolicyTrainer in other processes."""

    def __init__(self, actors: Sequence[Any], calls: RayCalls) -> None:
        self.actors = list(actors)
        self._calls = calls

    @property
    def first(self) -> Any:
        """Rank 0, which speaks for all."""
        return self.actors[0]

    def build(self, policy: Path, draft: Path | None, address: str) -> list[Any]:
        """Begin to make the trainer; the ranks' answers are to be waited for by built(). address: rank 0's."""
        num_ranks = len(self.actors)
        port = self._calls.get(f"{WHO} 0", self.first.free_port.remote())
        folders = (str(policy), str(draft) if draft else None)
        return [
            actor.build.remote(*folders, Rank(index, num_ranks, address, port))
            for index, actor in enumerate(self.actors)
        ]

    def built(self, answers: Sequence[Any]) -> None:
        """Return when every rank is made."""
        self._calls.get_all(WHO, answers, _STRAGGLER_S)

    def compute_logprobs(self, batch: TrainingBatch) -> LogprobResult:
        return self._call("compute_logprobs", batch)

    def train_step(self, batch: TrainingBatch, logprobs: LogprobResult, advantages_B: Tensor) -> dict[str, float]:
        return self._call("train_step", batch, logprobs, advantages_B)

    def train_draft(self, batch: TrainingBatch) -> dict[str, float]:
        return self._call("train_draft", batch)

    def save(self, path: Path) -> None:
        self._call("save", path)

    def load(self, path: Path) -> None:
        self._call("load", path)

    def _call(self, method: str, *arguments: Any) -> Any:
        if len(self.actors) > 1:
            arguments = tuple(ray.put(argument) for argument in arguments)
        references = [actor.call.remote(method, *arguments) for actor in self.actors]
        return self._calls.get_all(WHO, references, _STRAGGLER_S)[0]


def start_trainers(config: RunConfig, places: Places) -> list[Any]:
    """Start the trainer's processes, in the order of their ranks."""
    return [
        TrainerActor.options(  # type: ignore[attr-defined]
            **places.options(f"trainer-{rank}", seat), runtime_env={"env_vars": _ENVIRONMENT}
        ).remote(config.model_dump_json(), rank)
        for rank, seat in enumerate(places.layout.trainers)
    ]
