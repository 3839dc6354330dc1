"""Log-probabilities of response tokens from scores whose vocabulary is cut over the tensor-parallel ranks.

Shape suffixes: R response tokens, V the whole vocabulary, C this rank's columns of it, B responses, T tokens.
"""

import functools
import math
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from workers.train.megatron.micro_batches import MicroBatch

if TYPE_CHECKING:
    from workers.train.megatron.layout import RankLayout


class ResponseScores:
    """The model's scores at the response tokens of one micro-batch, at the sampling temperature."""

    def __init__(
        self, logits: Tensor, micro_batch: MicroBatch, temperature: float, vocab_size: int, layout: "RankLayout"
    ) -> None:
        """logits: the model's output, [B, T, C]; gradient flows. Columns at vocab_size and beyond are padding."""
        self._micro_batch, self._layout = micro_batch, layout
        self._vocab_size, self._temperature = vocab_size, temperature
        self._first_column = layout.place.tensor * logits.shape[-1]
        self.logits_RC = logits.flatten(0, 1)[micro_batch.sources_R]
        num_padded = self._first_column + logits.shape[-1] - vocab_size
        if num_padded > 0:
            is_padding_C = torch.arange(logits.shape[-1], device=logits.device) >= logits.shape[-1] - num_padded
            self.logits_RC = self.logits_RC.masked_fill(is_padding_C, -math.inf)

    def logprobs_BT(self) -> Tensor:
        """Of each response token, 0 elsewhere; float32, gradient flows. Tensor-parallel ranks call it together."""
        local_R = self._micro_batch.targets_R - self._first_column
        return self._micro_batch.scattered(
            _TokenLogprobs.apply(self.logits_RC, local_R, self._temperature, self._layout.tensor_group)
        )

    @torch.no_grad()
    def entropy_sum(self) -> float:
        """Of the distributions that the response tokens were drawn from, in nats: -sum_x p(x) log p(x) of each."""
        log_p_RC = self._log_p_RC
        products_RC = torch.where(log_p_RC.isneginf(), 0.0, log_p_RC.exp() * log_p_RC)
        total = -products_RC.sum(dtype=torch.float64)
        dist.all_reduce(total, group=self._layout.tensor_group)
        return total.item()

    @torch.no_grad()
    def distributions(self) -> "GatheredDistributions":
        """For the audit, which reads whole rows."""
        return GatheredDistributions(self._log_p_RC, self._micro_batch.ordinals_BT(), self._vocab_size, self._layout)

    @torch.no_grad()
    def gathered_logits(self) -> Tensor:
        """[R, V] before the temperature, on every tensor-parallel rank."""
        return gather_columns(self.logits_RC.detach(), self._layout)[:, : self._vocab_size]

    @functools.cached_property
    def _log_p_RC(self) -> Tensor:
        scaled_RC = self.logits_RC.detach().float() / self._temperature
        return scaled_RC - _log_normalizer(scaled_RC, self._layout.tensor_group)[:, None]


class GatheredDistributions:
    """Log-probabilities that read as [B, T, V], of which rows are gathered over the ranks when they are asked for.

    Only rows that score a response token are there. Tensor-parallel ranks must ask for the same rows together.
    """

    def __init__(self, log_p_RC: Tensor, ordinals_BT: Tensor, vocab_size: int, layout: "RankLayout") -> None:
        self._log_p_RC, self._ordinals_BT = log_p_RC, ordinals_BT
        self._vocab_size, self._layout = vocab_size, layout

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self._log_p_RC.device

    def __getitem__(self, at: tuple[Tensor, Tensor]) -> Tensor:
        """[M, V] of M rows and columns: the distribution of the token after each."""
        row_M, column_M = at
        own_MC = self._log_p_RC[self._ordinals_BT[row_M, column_M + 1]]
        return gather_columns(own_MC, self._layout)[:, : self._vocab_size]


class _TokenLogprobs(torch.autograd.Function):
    """log p(x) = z_x - log sum_y exp(z_y), z = logits / temperature, with y over all ranks' columns.

    Gradient: d log p(x) / d logit_y = (1[x = y] - p(y)) / temperature. A column's gradient needs only its own rank's p.
    """

    @staticmethod
    def forward(ctx: Any, logits_RC: Tensor, local_R: Tensor, temperature: float, group: dist.ProcessGroup) -> Tensor:
        """local_R: the tokens, counted from this rank's first column; outside its columns where another has them."""
        scaled_RC = logits_RC.float() / temperature
        log_sum_R = _log_normalizer(scaled_RC, group)
        is_here_R = (local_R >= 0) & (local_R < logits_RC.shape[1])
        column_R1 = local_R.clamp(0, logits_RC.shape[1] - 1)[:, None]
        chosen_R = torch.where(is_here_R, scaled_RC.gather(1, column_R1)[:, 0], 0.0)
        dist.all_reduce(chosen_R, group=group)
        ctx.save_for_backward(logits_RC, log_sum_R, is_here_R, column_R1)
        ctx.temperature = temperature
        return chosen_R - log_sum_R

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient_R,) = gradients
        logits_RC, log_sum_R, is_here_R, column_R1 = ctx.saved_tensors
        result_RC = (logits_RC.float() / ctx.temperature - log_sum_R[:, None]).exp_().neg_()
        result_RC.scatter_add_(1, column_R1, is_here_R[:, None].to(result_RC.dtype))
        result_RC.mul_(gradient_R[:, None] / ctx.temperature)
        return result_RC.to(logits_RC.dtype), None, None, None


def gather_columns(own_RC: Tensor, layout: "RankLayout") -> Tensor:
    """All ranks' columns side by side, on each of them."""
    if layout.tensor_size == 1:
        return own_RC
    parts = [torch.empty_like(own_RC) for _ in range(layout.tensor_size)]
    dist.all_gather(parts, own_RC.contiguous(), group=layout.tensor_group)
    return torch.cat(parts, dim=1)


def _log_normalizer(scaled_RC: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[R] log sum_y exp(z_y) over all ranks' columns."""
    highest_R = scaled_RC.amax(1)
    dist.all_reduce(highest_R, dist.ReduceOp.MAX, group=group)
    sum_R = (scaled_RC - highest_R[:, None]).exp_().sum(1)
    dist.all_reduce(sum_R, group=group)
    return highest_R + sum_R.log()
