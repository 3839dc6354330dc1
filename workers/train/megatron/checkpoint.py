"""Checkpoints to resume from, of which every rank writes its share. Every rank must see the folder."""

from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing.strategies import filesystem_async
from megatron.core.dist_checkpointing.utils import add_prefix_for_sharding
from torch import nn

from workers.train.megatron.layout import RankLayout
from workers.train.megatron.optimizer import PolicyOptimizer

_METADATA = {"distrib_optim_sharding_type": "fully_reshardable", "chained_optim_avoid_prefix": True}


def save_ranks(folder: Path, optimizer: PolicyOptimizer, reference: nn.Module | None, layout: RankLayout) -> None:
    """Every rank writes its share of parameters and optimiser state; all ranks call it together."""
    if layout.is_first:
        folder.mkdir(parents=True)
    dist.barrier(group=layout.hosts)
    _prime(optimizer)
    _collect_in_this_process()
    dist_checkpointing.save(_sharded(optimizer, reference, is_loading=False), str(folder))


def load_ranks(folder: Path, optimizer: PolicyOptimizer, reference: nn.Module | None, layout: RankLayout) -> None:
    """Take up what save_ranks() wrote. Raises ValueError where the folder holds no such checkpoint."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; the checkpoint was not written by trainer.kind megatron")
    _prime(optimizer)
    state = dist_checkpointing.load(_sharded(optimizer, reference, is_loading=True), str(folder))
    optimizer.model.module.load_state_dict(state["policy"])
    if reference is not None:
        reference.load_state_dict(state["reference"])
    if any(_counts_by_parameter(part) for part in optimizer.inner.chained_optimizers):
        _count_from_zero(state["optimizer"])
    optimizer.inner.load_state_dict(state["optimizer"])


def _sharded(optimizer: PolicyOptimizer, reference: nn.Module | None, *, is_loading: bool) -> dict[str, Any]:
    metadata = dict(_METADATA)  # a copy, for Megatron-core puts this layout's groups into it
    policy = optimizer.model.module.sharded_state_dict(metadata=metadata)
    state = {
        "policy": policy,
        "optimizer": optimizer.inner.sharded_state_dict(policy, is_loading=is_loading, metadata=metadata),
    }
    if reference is not None:
        state["reference"] = reference.sharded_state_dict(metadata=metadata)
        add_prefix_for_sharding(state["reference"], "reference.")
    return state


def _collect_in_this_process() -> None:
    """Megatron-core collects what its writers wrote in a process made for it, which outlives a rank that is killed.

    That is for saves which nobody waits for. Here the one that puts into the queue is the one that takes out of it, and
    a new queue holds nothing of a save that failed.
    """
    filesystem_async._results_queue = SimpleQueue()


def _prime(optimizer: PolicyOptimizer) -> None:
    """PyTorch's Adam has no state before its first step, but a place for it is needed, to load into or write from."""
    for part in optimizer.inner.chained_optimizers:
        if not _counts_by_parameter(part):
            continue
        for group in part.optimizer.param_groups:
            for parameter in group["params"]:
                if not (state := part.optimizer.state[parameter]):
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)


def _counts_by_parameter(part: Any) -> bool:
    """Whether it is PyTorch's Adam, which has a step count for each parameter."""
    return isinstance(part.optimizer, torch.optim.AdamW | torch.optim.Adam)


def _count_from_zero(state: Any) -> None:
    """Without a distributed optimiser a step count of 0 is not written; put it where it is missing."""
    if not isinstance(state, dict):
        return
    if "state" in state and "param_groups" in state:
        state["state"].setdefault("common_step", torch.tensor(0.0))
        return
    for part in state.values():
        _count_from_zero(part)
