"""Forward passes, and backward ones, of micro-batches through the pipeline's stages."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from megatron.core.distributed import finalize_model_grads
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import Tensor, nn

from workers.train.megatron.micro_batches import MicroBatch

Reader = Callable[[MicroBatch, Tensor], None]
"""Takes the last stage's output, [B, T, columns], of a micro-batch."""
Loss = Callable[[MicroBatch, Tensor], Tensor]
"""The share of the loss of a micro-batch from the last stage's output."""


def read_through(
    model: nn.Module,
    micro_batches: Sequence[MicroBatch],
    read: Reader,
    before: Callable[[MicroBatch], None] | None = None,
) -> None:
    """Pass micro-batches without gradient. before: called on every stage ahead of each."""

    def step(source: Any, stage: nn.Module) -> tuple[Tensor, Callable[..., None]]:
        micro_batch = next(source)
        if before is not None:
            before(micro_batch)
        output = _forward(stage, micro_batch)

        def take(logits: Tensor, non_loss_data: bool = True) -> None:
            read(micro_batch, logits)

        return output, take

    model.eval()
    with torch.no_grad():
        _run(step, model, micro_batches, forward_only=True, collect_non_loss_data=True)


def accumulate(model: nn.Module, micro_batches: Sequence[MicroBatch], loss: Loss) -> None:
    """Add the gradients of the losses' sum to the model's, over micro-batches and data-parallel ranks."""

    def step(source: Any, stage: nn.Module) -> tuple[Tensor, Callable[..., Any]]:
        micro_batch = next(source)
        output = _forward(stage, micro_batch)

        def share(logits: Tensor) -> tuple[Tensor, Tensor, None]:
            # The count of tokens is asked for, though the shares are divided by the update's already.
            return loss(micro_batch, logits), torch.zeros([], dtype=torch.int32, device=logits.device), None

        return output, share

    model.train()
    _run(step, model, micro_batches, forward_only=False)


def sum_gradients(model: list[nn.Module], num_tokens: Tensor | None = None, **named: Any) -> None:
    """What Megatron-core does with gradients at the end of a backward pass, without dividing by a number of tokens."""
    finalize_model_grads(model, None, **named)


def _forward(stage: nn.Module, micro_batch: MicroBatch) -> Tensor:
    packing = None
    if (ends := micro_batch.ends) is not None:
        longest = int(ends.diff().max())
        packing = PackedSeqParams("thd", ends, ends, max_seqlen_q=longest, max_seqlen_kv=longest)
    return stage(micro_batch.token_ids, micro_batch.position_ids, attention_mask=None, packed_seq_params=packing)


def _run(step: Callable[..., Any], model: nn.Module, micro_batches: Sequence[MicroBatch], **how: Any) -> None:
    if not micro_batches:
        return
    num_rows, width = micro_batches[0].token_ids.shape
    get_forward_backward_func()(
        forward_step_func=step,
        data_iterator=iter(micro_batches),
        model=[model],
        num_microbatches=len(micro_batches),
        seq_length=width,  # both are read from what is passed where there are several stages
        micro_batch_size=num_rows,
        **how,
    )
