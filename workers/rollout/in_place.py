"""New weights in the place of old ones: graphs that were captured hold where they lie, not what they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from workers.rollout.operations import Operations

_DIFFERS = "weights with {} cannot replace those with {}: make a new engine for another model"


@dataclass(frozen=True, slots=True)
class OnDevice(Mapping[str, Tensor]):
    """A state dict whose tensors are moved to a device one by one, as they are asked for."""

    state: Mapping[str, Tensor]
    device: torch.device

    def __getitem__(self, name: str) -> Tensor:
        return self.state[name].to(self.device)

    def __contains__(self, name: object) -> bool:
        return name in self.state

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)


def overwrite(target: Any, source: Any) -> None:
    """Copy every tensor of packed weights over its counterpart.

    Both are made the same way, of dataclasses, tuples and objects with attributes. Raises ValueError where they differ
    in anything but what their tensors hold.
    """
    if target is source or isinstance(target, Operations):
        return
    if isinstance(target, Tensor):
        mine, theirs = _kind(target), _kind(source)
        if mine != theirs:
            raise ValueError(_DIFFERS.format(theirs, mine))
        target.copy_(source)
    elif isinstance(target, tuple):
        for mine, theirs in zip(target, source, strict=True):
            overwrite(mine, theirs)
    elif is_dataclass(target) or (hasattr(target, "__dict__") and not callable(target)):
        names = [field.name for field in fields(target)] if is_dataclass(target) else vars(target)
        for name in names:
            overwrite(getattr(target, name), getattr(source, name))
    elif target != source:
        raise ValueError(_DIFFERS.format(source, target))


def _kind(value: Any) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else str(value)
