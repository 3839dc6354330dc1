"""Which rank has what of the model and of the batch."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel

from contract.config.trainer import MegatronTrainer
from workers.train.megatron import processors


class RanksLostError(RuntimeError):
    """Another rank did not come, or went away; the message says where this one waited for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One rank's coordinates, each counted from 0."""

    rank: int
    tensor: int
    pipeline: int
    data: int
    expert: int


class RankLayout:
    """The groups of this rank, and where every other one is. Made on all ranks together."""

    def __init__(self, trainer: MegatronTrainer, timeout: timedelta) -> None:
        """The process group of all ranks must be there. timeout: of any exchange between ranks."""
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=trainer.tensor_parallel_size,
            pipeline_model_parallel_size=trainer.pipeline_parallel_size,
            expert_model_parallel_size=trainer.expert_parallel_size,
            # An expert is never cut: its ranks are those of tensor and data parallelism, each with whole experts.
            expert_tensor_parallel_size=1,
            distributed_timeout_minutes=max(1, int(timeout.total_seconds() // 60)),
        )
        if processors.has_gpu():  # the random states that layers ask for, though nothing here draws from them
            tensor_parallel.model_parallel_cuda_manual_seed(0)
        self.hosts = dist.new_group(backend="gloo", timeout=timeout)
        """All ranks, for what lies in the hosts' memory."""
        self.tensor_group = parallel_state.get_tensor_model_parallel_group()
        self.tensor_size = trainer.tensor_parallel_size
        self.cuts_sequences = trainer.sequence_parallel and self.tensor_size > 1
        self.pipeline_size = trainer.pipeline_parallel_size
        self.expert_size = trainer.expert_parallel_size
        self.data_size: int = parallel_state.get_data_parallel_world_size()
        self.place = Place(
            dist.get_rank(),
            parallel_state.get_tensor_model_parallel_rank(),
            parallel_state.get_pipeline_model_parallel_rank(),
            parallel_state.get_data_parallel_rank(),
            parallel_state.get_expert_model_parallel_rank(),
        )
        places: list[Place | None] = [None] * dist.get_world_size()
        dist.all_gather_object(places, self.place, group=self.hosts)
        self.places = [place for place in places if place is not None]

    @property
    def is_first(self) -> bool:
        """Whether this rank answers for all."""
        return self.place.rank == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this rank scores tokens."""
        return self.place.pipeline == self.pipeline_size - 1

    @property
    def speaks_for_scores(self) -> bool:
        """Whether this rank is the one of its tensor-parallel group that tells what it scored."""
        return self.is_last_stage and self.place.tensor == 0

    def owner(self, *, pipeline: int, expert: int | None = None, data: int = 0) -> int:
        """The first rank of a stage that has a replica of its layers: the experts', where one is named."""
        if expert is not None:
            return next(p.rank for p in self.places if p.pipeline == pipeline and p.expert == expert)
        return next(p.rank for p in self.places if p.pipeline == pipeline and p.data == data and p.tensor == 0)

    @contextlib.contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """For what all ranks do together. Raises RanksLostError where one does not answer within the timeout."""
        try:
            yield
        except RuntimeError as error:
            if not _is_of_the_network(error):
                raise
            raise RanksLostError(
                f"rank {self.place.rank} of {len(self.places)} lost another rank while {doing}: that one failed or was "
                "stopped, and its own log says why"
            ) from error

    @contextlib.contextmanager
    def together(self, doing: str) -> Iterator[None]:
        """guarded(), and Megatron-core's tensors on processors where there is no GPU."""
        with self.guarded(doing), processors.on_processors():
            yield

    def close(self) -> None:
        """Give the groups back, so that another layout can be made."""
        parallel_state.destroy_model_parallel()


def join(rank: int, world_size: int, init_method: str, timeout: timedelta) -> None:
    """Meet all other ranks at an address such as tcp://host:port. Raises RanksLostError where one does not come."""
    processors.prepare()
    backend = "nccl" if processors.has_gpu() else "gloo"
    try:
        dist.init_process_group(backend, init_method=init_method, rank=rank, world_size=world_size, timeout=timeout)
    except RuntimeError as error:
        raise RanksLostError(
            f"rank {rank} of {world_size} did not meet all others at {init_method} within "
            f"{timeout.total_seconds():.0f} s: one of them did not start, and its own log says why"
        ) from error


def _is_of_the_network(error: RuntimeError) -> bool:
    """gloo's errors are told from others only by the place in its sources that they name."""
    return isinstance(error, dist.DistError) or "gloo/" in str(error)
