"""From responses to one padded training batch. B responses, T tokens of the longest prompt and response together."""

from collections.abc import Sequence
from dataclasses import fields

import torch

from workers.algo.sampling import Truncation
from workers.rollout.engine import Completion, DraftEvidence
from workers.train.trainer import TrainingBatch


def to_training_batch(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Completion],
    temperature: float,
    truncation: Truncation = Truncation(),
    *,
    evidence: DraftEvidence | None = None,
    audited: Sequence[int] | None = None,
) -> TrainingBatch:
    """Pad on the right; row i is completions[i] after the prompt that it names.

    evidence: its completion_M count the given completions. audited: the responses that the audit looks at; all where
    it is None. Raises ValueError for a completion whose tokens and log-probabilities differ in number.
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
    is_audited = None
    if audited is not None:
        is_audited = torch.zeros(len(rows), dtype=torch.bool)
        is_audited[list(audited)] = True
    return TrainingBatch(token_ids, mask, logprobs, temperature, truncation, evidence, is_audited)


def select_rows(batch: TrainingBatch, rows: torch.Tensor) -> TrainingBatch:
    """The given rows, without columns that are padding in all of them; evidence of a row given twice is kept once."""
    mask = batch.response_mask_BT[rows]
    width = int(mask.any(dim=0).nonzero().max()) + 1
    return TrainingBatch(
        batch.token_ids_BT[rows, :width],
        mask[:, :width],
        batch.engine_logprobs_BT[rows, :width],
        batch.temperature,
        batch.truncation,
        None if batch.evidence is None else _select_evidence(batch.evidence, rows, len(batch.token_ids_BT)),
        None if batch.is_audited_B is None else batch.is_audited_B[rows],
    )


def _select_evidence(evidence: DraftEvidence, rows: torch.Tensor, num_rows: int) -> DraftEvidence:
    """What concerns the given rows, which it then counts."""
    new_row_B = torch.full((num_rows,), -1)
    new_row_B[rows] = torch.arange(len(rows))
    completion_M = new_row_B[evidence.completion_M]
    is_kept_M = completion_M >= 0
    rest = {f.name: getattr(evidence, f.name)[is_kept_M] for f in fields(evidence) if f.name != "completion_M"}
    return DraftEvidence(completion_M=completion_M[is_kept_M], **rest)
