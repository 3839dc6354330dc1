"""What ranks measured on their shares, added up or put together in the hosts' memory."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from workers.algo.lossless.observations import AuditObservations
from workers.train.megatron.layout import RankLayout


def add_up(values: Sequence[float], layout: RankLayout) -> list[float]:
    """Sums over all ranks, on each of them; ranks with nothing to say give zeros."""
    total = torch.tensor(list(values), dtype=torch.float64)
    dist.all_reduce(total, group=layout.hosts)
    return total.tolist()


def join_rows(tensor_BT: Tensor, layout: RankLayout) -> Tensor:
    """Rows that each rank filled, zeros elsewhere, in one tensor on every rank."""
    joined = tensor_BT.cpu().contiguous()
    dist.all_reduce(joined, group=layout.hosts)
    return joined


def join_observations(own: AuditObservations, layout: RankLayout) -> AuditObservations:
    """Of all ranks in the order of ranks, on rank 0; an empty one elsewhere."""
    parts = gather(own, layout)
    return AuditObservations.joined(parts) if parts is not None else AuditObservations()


def gather(value: Any, layout: RankLayout) -> list[Any] | None:
    """Every rank's value, on rank 0."""
    parts: list[Any] | None = [None] * len(layout.places) if layout.is_first else None
    dist.gather_object(value, parts, dst=0, group=layout.hosts)
    return parts


def share(value: Any, layout: RankLayout) -> Any:
    """Rank 0's value, on every rank."""
    values = [value]
    dist.broadcast_object_list(values, src=0, group=layout.hosts)
    return values[0]
