"""A batch cut into micro-batches, and each of them as the model reads it.

Shape suffixes: B responses of a micro-batch, T tokens, N positions that the model reads, R response tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from workers.data.batch import select_rows
from workers.train.trainer import TrainingBatch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one data-parallel rank computes at once."""

    rows: Tensor
    """Its responses, as rows of the whole batch; none where the ranks outnumber what is left."""
    part: TrainingBatch | None
    """Those responses, on the rank's device; None where there are none."""
    token_ids: Tensor
    """int64, [B, T] padded on the right, or [1, N] one response after another."""
    position_ids: Tensor
    """int64, of the same shape: places in the sequence."""
    ends: Tensor | None
    """int32: flat ends of packed responses, 0 first; None where responses are padded."""
    sources_R: Tensor
    """int64: flat position whose output scores each response token, in the order of part.response_mask_BT.nonzero()."""
    targets_R: Tensor
    """int64: those tokens."""

    def scattered(self, values_R: Tensor) -> Tensor:
        """[B, T] of a value for each response token, 0 elsewhere; gradient flows."""
        assert self.part is not None
        mask_BT = self.part.response_mask_BT > 0
        empty = torch.zeros(mask_BT.shape, dtype=values_R.dtype, device=values_R.device)
        return empty.index_put(tuple(mask_BT.nonzero().unbind(1)), values_R)

    def ordinals_BT(self) -> Tensor:
        """int64: which of the R response tokens each is; meaningless elsewhere."""
        assert self.part is not None
        mask_BT = self.part.response_mask_BT > 0
        return (mask_BT.flatten().cumsum(0) - 1).view(mask_BT.shape)


def cut(batch: TrainingBatch, rows: Tensor, micro_batch_size: int, num_shares: int) -> list[list[Tensor]]:
    """[micro-batch][data-parallel rank]: rows of the batch. The same on every rank.

    Responses of like length are together, so that little is padding, and neighbours go to different ranks, so that
    these have equal work. Where the numbers do not divide, the last micro-batch is smaller, for some ranks empty: what
    is missing costs time on the others, and changes nothing in the sum.
    """
    ordered = rows[lengths(batch)[rows].argsort(stable=True)]
    chunks = ordered.split(micro_batch_size * num_shares)
    return [[chunk[share::num_shares] for share in range(num_shares)] for chunk in chunks]


def lengths(batch: TrainingBatch) -> Tensor:
    """[B] tokens of each sequence up to the end of its response, less 1."""
    return (batch.response_mask_BT * torch.arange(batch.response_mask_BT.shape[1])).amax(dim=1).long()


def micro_batches(
    batch: TrainingBatch, cuts: list[list[Tensor]], share: int, *, pack: bool, multiple: int, device: torch.device
) -> Iterator[MicroBatch]:
    """One rank's share. multiple: what the number of positions must divide by (sequence parallelism)."""
    for shares in cuts:
        yield arrange(batch, shares[share], pack=pack, multiple=multiple, device=device)


def arrange(batch: TrainingBatch, rows: Tensor, *, pack: bool, multiple: int, device: torch.device) -> MicroBatch:
    """The rows as the model reads them, on a device."""
    if not len(rows):
        blank, nothing = torch.zeros(1, multiple, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
        layout = _packed(blank, torch.tensor([multiple]), multiple) if pack else _padded(blank, multiple)
        return _on(device, rows, None, layout, nothing, nothing)
    part = select_rows(batch, rows)
    num_tokens_B = lengths(part) + 1
    layout = _packed(part.token_ids_BT, num_tokens_B, multiple) if pack else _padded(part.token_ids_BT, multiple)
    row_R, column_R = (part.response_mask_BT > 0).nonzero().unbind(1)
    sources_R = layout.starts_B[row_R] + column_R - 1
    return _on(device, rows, part, layout, sources_R, part.token_ids_BT[row_R, column_R])


@dataclass(frozen=True, slots=True)
class _Positions:
    """Where the tokens of each response stand."""

    token_ids: Tensor
    position_ids: Tensor
    starts_B: Tensor
    """Flat position of each response's first token."""
    ends: Tensor | None
    """Flat ends of packed responses, 0 first."""


def _padded(token_ids_BT: Tensor, multiple: int) -> _Positions:
    num_rows, width = token_ids_BT.shape
    padded = torch.nn.functional.pad(token_ids_BT, (0, -width % multiple))
    width = padded.shape[1]
    return _Positions(padded, torch.arange(width).expand(num_rows, -1), torch.arange(num_rows) * width, None)


def _packed(token_ids_BT: Tensor, num_tokens_B: Tensor, multiple: int) -> _Positions:
    """What is missing to the multiple is a sequence of its own at the end, which nothing reads."""
    counts = num_tokens_B.tolist()
    tokens = [row[:count] for row, count in zip(token_ids_BT, counts, strict=True)]
    if missing := -sum(counts) % multiple:
        tokens.append(torch.zeros(missing, dtype=torch.int64))
    ends = torch.tensor([0, *(len(part) for part in tokens)]).cumsum(0)
    positions = torch.cat([torch.arange(len(part)) for part in tokens])
    return _Positions(torch.cat(tokens)[None], positions[None], ends[: len(counts)], ends)


def _on(
    device: torch.device,
    rows: Tensor,
    part: TrainingBatch | None,
    layout: _Positions,
    sources_R: Tensor,
    targets_R: Tensor,
) -> MicroBatch:
    if part is not None:
        part = replace(
            part,
            token_ids_BT=part.token_ids_BT.to(device),
            response_mask_BT=part.response_mask_BT.to(device),
            engine_logprobs_BT=part.engine_logprobs_BT.to(device),
            is_audited_B=None if part.is_audited_B is None else part.is_audited_B.to(device),
        )
    ends = None if layout.ends is None else layout.ends.to(torch.int32).to(device)
    return MicroBatch(
        rows,
        part,
        layout.token_ids.to(device),
        layout.position_ids.to(device),
        ends,
        sources_R.to(device),
        targets_R.to(device),
    )
