"""From responses to one padded training batch. B responses, T tokens of the longest prompt and response together."""

from collections.abc import Sequence

import torch

from workers.rollout.engine import Completion
from workers.train.trainer import TrainingBatch


def to_training_batch(
    prompts: Sequence[Sequence[int]], completions: Sequence[Completion], temperature: float
) -> TrainingBatch:
    """Pad on the right; row i is completions[i] after the prompt that it names.

    Raises ValueError for a completion whose tokens and log-probabilities differ in number.
    """
    rows = [(prompts[c.prompt_index], c) for c in completions]
    longest = max(len(prompt) + len(c.token_ids) for prompt, c in rows)
    token_ids = torch.zeros(len(rows), longest, dtype=torch.int64)
    mask = torch.zeros(len(rows), longest)
    logprobs = torch.zeros(len(rows), longest)
    for row, (prompt, c) in enumerate(rows):
        if len(c.token_ids) != len(c.logprobs):
            raise ValueError(f"completion {row} has {len(c.token_ids)} tokens but {len(c.logprobs)} log-probabilities")
        start, end = len(prompt), len(prompt) + len(c.token_ids)
        token_ids[row, :end] = torch.tensor([*prompt, *c.token_ids])
        mask[row, start:end] = 1
        logprobs[row, start:end] = torch.tensor(c.logprobs)
    return TrainingBatch(token_ids, mask, logprobs, temperature)


def select_rows(batch: TrainingBatch, rows: torch.Tensor) -> TrainingBatch:
    """The given rows, without columns that are padding in all of them."""
    mask = batch.response_mask_BT[rows]
    width = int(mask.any(dim=0).nonzero().max()) + 1
    return TrainingBatch(
        batch.token_ids_BT[rows, :width],
        mask[:, :width],
        batch.engine_logprobs_BT[rows, :width],
        batch.temperature,
    )
