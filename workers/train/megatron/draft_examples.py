"""What a draft learns from: the policy's hidden states and scores of some responses, brought to rank 0.

Shape suffixes: B responses, T tokens, R response tokens, V vocabulary, D hidden size, F features (taps * D).
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
from torch import Tensor

from workers.train.megatron.correspondence import Correspondence
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.micro_batches import MicroBatch, lengths
from workers.train.megatron.scores import ResponseScores
from workers.train.trainer import TrainingBatch


class DraftExamples:
    """Kept in the hosts' memory during a pass without gradient; collect() then brings it to rank 0.

    Layers that a draft taps may be on any stage, and each stage keeps what its own layers give. A layer's output is
    seen by a hook, which recomputation would call twice: no pass that is seen here has a backward pass.
    """

    def __init__(
        self,
        rows: Tensor,
        batch: TrainingBatch,
        tap_layers: Sequence[int],
        correspondence: Correspondence,
        layout: RankLayout,
    ) -> None:
        """rows: the responses in the order in which they are trained on; one may come again."""
        self.rows = rows
        self._wanted = set(rows.tolist())
        self._widths = (lengths(batch) + 1).tolist()
        self._num_tokens = (batch.response_mask_BT > 0).sum(1).tolist()
        self._taps, self._layout = tuple(tap_layers), layout
        self._places = [correspondence.stage_of_layer(layer) for layer in tap_layers]
        self._current: MicroBatch | None = None
        self._kept: dict[tuple[int, int], Tensor] = {}

    @contextlib.contextmanager
    def watching(self, model: torch.nn.Module) -> Iterator[None]:
        """Listen to the tapped layers of this rank's stage."""
        hooks = [
            model.decoder.layers[local].register_forward_hook(self._hook(tap))
            for tap, (stage, local) in enumerate(self._places)
            if stage == self._layout.place.pipeline
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def expect(self, micro_batch: MicroBatch) -> None:
        """The next outputs are those of this micro-batch."""
        self._current = micro_batch

    def take_scores(self, scores: ResponseScores, micro_batch: MicroBatch) -> None:
        """Keep the raw scores of wanted responses; tensor-parallel ranks call it together."""
        assert micro_batch.part is not None
        wanted = [(at, row) for at, row in enumerate(micro_batch.rows.tolist()) if row in self._wanted]
        if not wanted:
            return
        logits_RV = scores.gathered_logits()
        if self._layout.place.tensor == 0:
            counts = (micro_batch.part.response_mask_BT > 0).sum(1).tolist()
            by_row = logits_RV.split(counts)
            self._kept |= {(row, -1): by_row[at].cpu() for at, row in wanted}

    def collect(self, dtype: torch.dtype, shape: tuple[int, int], batch: TrainingBatch) -> "CollectedExamples | None":
        """Everything on rank 0, None elsewhere; all ranks call it together. shape: hidden size and vocabulary."""
        hidden_size, vocab_size = shape
        owners = self._owners()
        result = CollectedExamples(self.rows) if self._layout.is_first else None
        for row in sorted(self._wanted):
            taps = [
                self._bring((row, tap), owners[row, tap], (self._widths[row], hidden_size), dtype)
                for tap in range(len(self._taps))
            ]
            logits = self._bring((row, -1), owners[row, -1], (self._num_tokens[row], vocab_size), dtype)
            if result is not None and logits is not None:
                result.add(row, [tap for tap in taps if tap is not None], logits, batch)
        self._kept.clear()
        return result

    def _hook(self, tap: int) -> Any:
        def keep(layer: torch.nn.Module, inputs: Any, output: Any) -> None:
            micro_batch = self._current
            if micro_batch is None or micro_batch.part is None:
                return
            wanted = [(at, row) for at, row in enumerate(micro_batch.rows.tolist()) if row in self._wanted]
            if not wanted:
                return
            hidden = self._whole_sequence(output[0] if isinstance(output, tuple) else output)
            if self._layout.place.tensor == 0:
                for at, row in wanted:
                    self._kept[row, tap] = self._of_row(hidden, micro_batch, at, self._widths[row])

        return keep

    def _whole_sequence(self, hidden: Tensor) -> Tensor:
        """[positions, B, D] where the sequence may be cut over the tensor-parallel ranks."""
        return gather_from_sequence_parallel_region(hidden) if self._layout.cuts_sequences else hidden

    def _of_row(self, hidden: Tensor, micro_batch: MicroBatch, at: int, width: int) -> Tensor:
        if micro_batch.ends is None:
            return hidden[:width, at].cpu().clone()
        start = int(micro_batch.ends[at])
        return hidden[start : start + width, 0].cpu().clone()

    def _owners(self) -> dict[tuple[int, int], int]:
        """Which rank has each piece, the same on all."""
        kept: list[Any] = [None] * len(self._layout.places)
        dist.all_gather_object(kept, list(self._kept), group=self._layout.hosts)
        return {key: rank for rank, keys in enumerate(kept) for key in keys}

    def _bring(self, key: tuple[int, int], owner: int, shape: tuple[int, int], dtype: torch.dtype) -> Tensor | None:
        rank, hosts = self._layout.place.rank, self._layout.hosts
        if rank == owner:
            tensor = self._kept.pop(key)
            if owner != 0:
                dist.send(tensor.contiguous(), dst=0, group=hosts)
            return tensor if rank == 0 else None
        if rank != 0:
            return None
        received = torch.empty(shape, dtype=dtype)
        dist.recv(received, src=owner, group=hosts)
        return received


class CollectedExamples:
    """Hidden states and scores by response, on rank 0."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self._features: dict[int, Tensor] = {}
        self._logits: dict[int, Tensor] = {}
        self._sources: dict[int, Tensor] = {}

    def add(self, row: int, taps: Sequence[Tensor], logits_RV: Tensor, batch: TrainingBatch) -> None:
        """taps: [T, D] of each tapped layer; logits_RV: row r scores the row's response token r."""
        if taps:
            self._features[row] = torch.cat(list(taps), dim=-1)
        self._logits[row] = logits_RV
        self._sources[row] = (batch.response_mask_BT[row] > 0).nonzero()[:, 0] - 1

    def features_BTF(self, rows: Tensor, width: int) -> Tensor | None:
        """float32, zeros at padding; None where no layer is tapped."""
        if not self._features:
            return None
        parts = [self._features[row].float() for row in rows.tolist()]
        return torch.stack([torch.nn.functional.pad(part, (0, 0, 0, width - len(part))) for part in parts])

    def logits_BTV(self, rows: Tensor, width: int) -> Tensor:
        """float32; zeros, which no loss reads, at positions that score no response token."""
        vocab_size = next(iter(self._logits.values())).shape[1]
        result = torch.zeros(len(rows), width, vocab_size)
        for at, row in enumerate(rows.tolist()):
            result[at, self._sources[row]] = self._logits[row].float()
        return result
