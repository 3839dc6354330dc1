"""How the process of one rank begins: for the actors that a run is placed in.

All ranks are made together and called together, every method of ON_ALL_RANKS with the same arguments; what they return
is complete on rank 0. `export_weights` is a generator that every rank walks to its end.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from contract.config import RunConfig
from contract.config.drafter import OnlineDraftTraining, TrainedDrafter
from contract.config.trainer import MegatronTrainer
from workers.seeds import derive_seed
from workers.train.megatron.checks import check_packages

ON_ALL_RANKS = ("compute_logprobs", "train_step", "train_draft", "export_weights", "save", "load")
"""Methods that exchange something with other ranks."""

TIMEOUT = timedelta(minutes=30)
"""Longest wait for another rank, which then ends the process with an error: longer than any step's slowest rank."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """Who one rank is, and where it meets the others."""

    rank: int
    world_size: int
    init_method: str
    """Address of rank 0's machine and a free port there, such as tcp://10.0.0.1:29500."""
    local_gpu: int = 0
    """Which of the GPUs that this process sees is its own; of no use where it sees none."""
    timeout: timedelta = TIMEOUT


def make_rank(config_json: str, process: RankProcess, policy_folder: str, draft_folder: str | None) -> Any:
    """This rank's MegatronPolicyTrainer. All ranks call it together, each in a process of its own that has its threads.

    Raises LayoutError or CheckpointError, on every rank alike, where configuration, policy and machine do not go
    together; torch's DistBackendError or RuntimeError where other ranks do not come within the timeout.
    """
    config = RunConfig.model_validate_json(config_json)
    assert isinstance(config.trainer, MegatronTrainer)
    check_packages(config.trainer)
    if torch.cuda.is_available():
        torch.cuda.set_device(process.local_gpu)
        # Megatron-core wants one connection, so that exchanges start in the order in which they are asked for.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")

    # Only now, when a missing package has been told of.
    from workers.train.megatron.layout import RankLayout, join  # noqa: PLC0415
    from workers.train.megatron.trainer import MegatronPolicyTrainer  # noqa: PLC0415

    join(process.rank, process.world_size, process.init_method, process.timeout)
    drafter = config.drafter
    is_trained = isinstance(drafter, TrainedDrafter)
    return MegatronPolicyTrainer(
        Path(policy_folder),
        (Path(draft_folder), drafter.kind) if draft_folder else None,
        trainer=config.trainer,
        grpo=config.grpo,
        online=drafter.online if is_trained else OnlineDraftTraining(num_updates_per_step=0),
        layout=RankLayout(config.trainer, process.timeout),
        seed=derive_seed(config.seed, "trainer"),
    )
