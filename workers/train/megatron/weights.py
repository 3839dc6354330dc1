"""Weights from Hugging Face folders into the ranks, and from the ranks out again, one parameter at a time."""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from workers.model.hf_checkpoint import CheckpointError, checkpoint_files
from workers.train.megatron import processors
from workers.train.megatron.correspondence import Correspondence, Unit
from workers.train.megatron.layout import RankLayout


class TensorFiles:
    """The tensors of a folder, each read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError where the folder holds no safetensors."""
        self._folder = folder
        self._files: dict[str, object] = {}
        for path in checkpoint_files(folder):
            try:
                file = safe_open(path, framework="pt")
            except (FileNotFoundError, SafetensorError) as error:
                raise CheckpointError(f"{path}: cannot be read as safetensors: {error}") from error
            self._files |= dict.fromkeys(file.keys(), file)

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Raises CheckpointError where the tensor is missing or of another shape."""
        if name not in self._files:
            raise CheckpointError(f"{self._folder}: {name} is missing")
        tensor: Tensor = self._files[name].get_tensor(name)  # type: ignore[attr-defined]
        if tuple(tensor.shape) != shape:
            raise CheckpointError(
                f"{self._folder}: {name} has shape {list(tensor.shape)}, but config.json makes it {list(shape)}"
            )
        return tensor


@torch.no_grad()
def load_weights(model: nn.Module, folder: Path, correspondence: Correspondence, layout: RankLayout) -> None:
    """Copy a folder's weights into this rank's part of the model. Raises CheckpointError."""
    parameters, files = dict(model.named_parameters()), TensorFiles(folder)
    waiting = set(parameters)
    for unit in correspondence.units():
        for name in _places(unit, parameters, layout):
            whole = unit.join([files.read(*named) for named in zip(unit.hf_names, unit.hf_shapes, strict=True)])
            parameters[name].copy_(unit.shard(whole, layout.place.tensor, layout.tensor_size))
            _mark(parameters[name], unit)
            waiting.discard(name)
    if waiting:
        raise RuntimeError(f"{sorted(waiting)[0]} of {len(waiting)} parameters has no place in the checkpoint")


def _mark(parameter: nn.Parameter, unit: Unit) -> None:
    """Tell Megatron-core what it notes itself only where it draws the weights, and what it notes wrongly.

    Norms count a parameter on every rank that has a part of its own, others on the first rank alone. Experts are whole
    on ranks that differ in the tokens they see, whether or not these ranks share the experts out: their gradients are
    added up over the experts' data-parallel ranks, which Megatron-core does only where it shares the experts out.
    """
    is_expert = unit.expert_rank is not None
    if unit.cut != "whole" or is_expert:
        parameter.tensor_model_parallel = True  # type: ignore[attr-defined]
        parameter.partition_dim = 1 if unit.cut == "columns" else 0  # type: ignore[attr-defined]
        parameter.partition_stride = 1  # type: ignore[attr-defined]
    parameter.allreduce = not is_expert  # type: ignore[attr-defined]


def export_weights(
    model: nn.Module, correspondence: Correspondence, layout: RankLayout
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the checkpoint by name on rank 0, nothing elsewhere; all ranks walk through it together.

    Besides the model each rank holds one parameter at a time, rank 0 the whole of it.
    """
    parameters = dict(model.named_parameters())
    dtype = next(iter(parameters.values())).dtype
    for unit in correspondence.units():
        whole = fetch(unit, parameters, layout, dtype)
        if whole is not None:
            yield from zip(unit.hf_names, unit.split(whole), strict=True)


@torch.no_grad()
def fetch(unit: Unit, parameters: dict[str, nn.Parameter], layout: RankLayout, dtype: torch.dtype) -> Tensor | None:
    """The uncut parameter on rank 0, None elsewhere; all ranks call it together."""
    owner = layout.owner(pipeline=unit.stage, expert=unit.expert_rank)
    place = layout.place
    whole: Tensor | None = None
    is_cut = unit.cut != "whole" and layout.tensor_size > 1
    if place.rank == owner or (is_cut and place.pipeline == unit.stage and place.data == 0):
        name = next(name for name in unit.local_names if name in parameters)
        shard = parameters[name].detach()
        shards = _gather(shard, owner, layout) if is_cut else [shard]
        whole = unit.unshard(shards) if shards else None
    if owner == 0:
        return whole
    if place.rank == owner and whole is not None:
        dist.send(whole.contiguous(), dst=0)
    if place.rank != 0:
        return None
    received = torch.empty(unit.shape, dtype=dtype, device=processors.device())
    dist.recv(received, src=owner)
    return received


def _gather(shard: Tensor, owner: int, layout: RankLayout) -> list[Tensor]:
    is_owner = layout.place.rank == owner
    shards = [torch.empty_like(shard) for _ in range(layout.tensor_size)] if is_owner else []
    dist.gather(shard.contiguous(), shards or None, dst=owner, group=layout.tensor_group)
    return shards


def _places(unit: Unit, parameters: dict[str, nn.Parameter], layout: RankLayout) -> list[str]:
    """Names of what this rank has of a parameter."""
    place = layout.place
    is_here = place.pipeline == unit.stage and unit.expert_rank in (None, place.expert)
    names = [*(unit.local_names if is_here else ()), unit.copy_name]
    return [name for name in names if name in parameters]
