"""Checkpoints of ranks that each have a part of the policy: sharded ones to resume from, whole ones for others to use.

A trainer's folder holds `policy` and `draft` in Hugging Face layout, the ranks' parameters and optimiser states in
`ranks`, and what rank 0 alone knows in `state.pt`. Every rank must see the folder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing
from safetensors.torch import save_file
from torch import Tensor, nn

from workers.train.megatron.layout import RankLayout
from workers.train.megatron.optimizer import PolicyOptimizer
from workers.train.megatron.shape import PolicyShape

_SHARD_BYTES = 4 * 2**30
"""Tensors of about this size are in rank 0's memory before a file of them is written."""
_METADATA = {"distrib_optim_sharding_type": "fully_reshardable", "chained_optim_avoid_prefix": True}


def save_ranks(folder: Path, optimizer: PolicyOptimizer, reference: nn.Module | None, layout: RankLayout) -> None:
    """Every rank writes its share of parameters and optimiser state; all ranks call it together."""
    if layout.is_first:
        folder.mkdir(parents=True)
    dist.barrier(group=layout.hosts)
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
    optimizer.inner.load_state_dict(state["optimizer"])


def write_policy(folder: Path, shape: PolicyShape, weights: Iterator[tuple[str, Tensor]], *, is_writer: bool) -> None:
    """config.json and safetensors files of a few GiB from tensors that come one by one; all ranks walk through them."""
    files: list[dict[str, Tensor]] = [{}]
    names: list[list[str]] = []
    size_bytes = total_bytes = 0
    dtype = "float32"
    if is_writer:
        folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in weights:
        dtype = str(tensor.dtype).removeprefix("torch.")
        files[0][name] = tensor.cpu().contiguous()
        size_bytes += tensor.nbytes
        total_bytes += tensor.nbytes
        if size_bytes >= _SHARD_BYTES:
            names.append(_write_part(folder, files[0], len(names)))
            files[0], size_bytes = {}, 0
    if not is_writer:
        return
    if files[0]:
        names.append(_write_part(folder, files[0], len(names)))
    _name_parts(folder, names, total_bytes)
    (folder / "config.json").write_text(json.dumps({**shape.document, "dtype": dtype}, indent=2) + "\n")


def _write_part(folder: Path, tensors: dict[str, Tensor], index: int) -> list[str]:
    save_file(tensors, _part(folder, index), metadata={"format": "pt"})
    return list(tensors)


def _part(folder: Path, index: int) -> Path:
    return folder / f"part-{index}.safetensors"


def _name_parts(folder: Path, names: list[list[str]], total_bytes: int) -> None:
    """The names that readers look for, which hold the number of files."""
    if len(names) == 1:
        _part(folder, 0).rename(folder / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for index, held in enumerate(names):
        name = f"model-{index + 1:05d}-of-{len(names):05d}.safetensors"
        _part(folder, index).rename(folder / name)
        weight_map |= dict.fromkeys(held, name)
    index_json = {"metadata": {"total_size": total_bytes}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index_json, indent=2) + "\n")


def _sharded(optimizer: PolicyOptimizer, reference: nn.Module | None, *, is_loading: bool) -> dict[str, Any]:
    policy = optimizer.model.module.sharded_state_dict(metadata=_METADATA)
    state = {
        "policy": policy,
        "optimizer": optimizer.inner.sharded_state_dict(policy, is_loading=is_loading, metadata=_METADATA),
    }
    if reference is not None:
        state["reference"] = reference.sharded_state_dict(prefix="reference.", metadata=_METADATA)
    return state


def _prime(optimizer: PolicyOptimizer) -> None:
    """PyTorch's Adam has no state before its first step, but a place for it is needed to load into."""
    for part in optimizer.inner.chained_optimizers:
        if not isinstance(part.optimizer, torch.optim.AdamW | torch.optim.Adam):
            continue
        for group in part.optimizer.param_groups:
            for parameter in group["params"]:
                if not (state := part.optimizer.state[parameter]):
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
