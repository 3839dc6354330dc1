"""Passes over a batch's responses, of which every data-parallel rank takes a share.

Shape suffixes: B responses, T tokens.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from contract.config.trainer import MegatronTrainer
from workers.train.megatron import processors, totals
from workers.train.megatron.draft_examples import DraftExamples
from workers.train.megatron.layout import RankLayout
from workers.train.megatron.micro_batches import MicroBatch, cut, micro_batches
from workers.train.megatron.passes import accumulate, read_through
from workers.train.megatron.scores import ResponseScores
from workers.train.trainer import TrainingBatch

ReadScores = Callable[[ResponseScores, MicroBatch], None]


class BatchPass:
    """How one configuration's responses go through one layout."""

    def __init__(self, trainer: MegatronTrainer, layout: RankLayout, vocab_size: int) -> None:
        self._trainer, self._layout, self._vocab_size = trainer, layout, vocab_size

    def read(
        self,
        model: nn.Module,
        batch: TrainingBatch,
        rows: Tensor,
        read: ReadScores,
        examples: DraftExamples | None = None,
    ) -> None:
        """Without gradient. read: called on the last stage with the scores of each micro-batch that has responses."""

        def take(micro_batch: MicroBatch, logits: Tensor) -> None:
            if micro_batch.part is not None:
                read(self._scores(micro_batch, logits, batch.temperature), micro_batch)

        shares = self._share(batch, rows)
        if examples is None:
            read_through(model, shares, take)
            return
        with examples.watching(model):
            read_through(model, shares, take, examples.expect)

    def logprobs_BT(self, model: nn.Module, batch: TrainingBatch, rows: Tensor) -> Tensor:
        """Of the rows' response tokens, 0 elsewhere; in the hosts' memory of every rank."""
        result = torch.zeros_like(batch.engine_logprobs_BT)
        self.read(model, batch, rows, lambda scores, micro_batch: self.fill(result, scores, micro_batch))
        return totals.join_rows(result, self._layout)

    def fill(self, result_BT: Tensor, scores: ResponseScores, micro_batch: MicroBatch) -> None:
        """Put a micro-batch's log-probabilities into their rows, on the one rank that speaks for it."""
        logprobs = scores.logprobs_BT().cpu()
        if self._layout.speaks_for_scores:
            result_BT[micro_batch.rows, : logprobs.shape[1]] = logprobs

    def accumulate(
        self, model: nn.Module, batch: TrainingBatch, rows: Tensor, loss: Callable[[Tensor, MicroBatch], Tensor]
    ) -> None:
        """Add up gradients. loss: of a micro-batch's log-probabilities [B, T]; shares add up over all ranks."""

        def of_output(micro_batch: MicroBatch, logits: Tensor) -> Tensor:
            if micro_batch.part is None:
                return logits[..., :1].float().sum() * 0.0  # a gradient of zero, which other ranks wait for
            return loss(self._scores(micro_batch, logits, batch.temperature).logprobs_BT(), micro_batch)

        accumulate(model, self._share(batch, rows), of_output)

    def _share(self, batch: TrainingBatch, rows: Tensor) -> list[MicroBatch]:
        layout = self._layout
        return list(
            micro_batches(
                batch,
                cut(batch, rows, self._trainer.micro_batch_size, layout.data_size),
                layout.place.data,
                pack=self._trainer.pack_sequences,
                multiple=layout.tensor_size if layout.cuts_sequences else 1,
                device=processors.device(),
            )
        )

    def _scores(self, micro_batch: MicroBatch, logits: Tensor, temperature: float) -> ResponseScores:
        return ResponseScores(logits, micro_batch, temperature, self._vocab_size, self._layout)
