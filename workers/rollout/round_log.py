"""What the rounds of one generate() call did, kept for the responses that were asked for.

Shape suffixes: R rows, K drafted tokens, J = K + 1, V vocabulary, M tested tokens, N tokens kept of a distribution.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from workers.rollout.drafters.drafter import Draft
from workers.rollout.engine import DraftEvidence, RoundRecord
from workers.rollout.rows import Row

_MAX_KEPT_OF_DRAFT = 64
"""Tokens of a draft's distribution that are kept: all that matters of a large vocabulary's."""
_SMALLEST_PROBABILITY = 1e-38
"""Floor of recorded probabilities, so that their logarithms stay finite."""


class RoundLog:
    """Records of some responses, and evidence of some."""

    def __init__(self, record: Collection[int], evidence: Collection[int]) -> None:
        self._recorded = frozenset(record)
        self._evident = frozenset(evidence)
        self.records: dict[int, list[RoundRecord]] = {completion: [] for completion in record}
        self._evidence: list[DraftEvidence] = []
        """Still on the device, which is read once at the end."""

    def first_token(self, completion: int, token_id: int) -> None:
        """A response's first token, drawn from the prompt's own pass."""
        if completion in self._recorded:
            self.records[completion].append(RoundRecord([], 0, token_id, [], []))

    def add(
        self,
        rows: Sequence[Row],
        draft: Draft | None,
        probs: Tensor,
        new_tokens: Sequence[Sequence[int]],
        num_accepted: Sequence[int],
        num_kept: Sequence[int],
    ) -> None:
        """One round, after its tokens were appended to the rows. probs: [R, J, V], or packed, one row's behind the
        other's."""
        if self._recorded:
            for index, row in enumerate(rows):
                if row.completion in self._recorded:
                    before = draft_lengths(draft)[:index] if draft is not None and probs.dim() == 2 else []
                    probs_JV = probs[sum(before) + index :] if probs.dim() == 2 else probs[index]
                    record = _record(index, draft, probs_JV, new_tokens[index], num_accepted[index], num_kept[index])
                    self.records[row.completion].append(record)
        if draft is not None and self._evident:
            self._add_evidence(rows, draft, num_accepted, num_kept)

    def evidence(self) -> DraftEvidence | None:
        """All of it; None where nothing was drafted."""
        if not self._evidence:
            return None
        width = max(part.top_ids_MN.shape[1] for part in self._evidence)
        padded = [
            torch.nn.functional.pad(part.top_ids_MN, (0, width - part.top_ids_MN.shape[1]), value=-1)
            for part in self._evidence
        ]
        probs = [
            torch.nn.functional.pad(part.top_probs_MN, (0, width - part.top_probs_MN.shape[1]))
            for part in self._evidence
        ]
        columns = [
            [part.completion_M for part in self._evidence],
            [part.position_M for part in self._evidence],
            [part.drafted_M for part in self._evidence],
            [part.is_accepted_M for part in self._evidence],
            [part.draft_probs_M for part in self._evidence],
            padded,
            probs,
        ]
        return DraftEvidence(*(torch.cat(column).cpu() for column in columns))

    def _add_evidence(
        self, rows: Sequence[Row], draft: Draft, num_accepted: Sequence[int], num_kept: Sequence[int]
    ) -> None:
        """Tested positions: the accepted ones and the one that was rejected, as far as the response goes."""
        num_drafted = draft_lengths(draft)
        at_rows, at_columns, completions, positions = [], [], [], []
        for index, row in enumerate(rows):
            if row.completion not in self._evident:
                continue
            num_tested = min(num_accepted[index] + 1, num_drafted[index], num_kept[index])
            first = len(row.token_ids) - num_kept[index] - row.num_prompt_tokens
            at_rows += [index] * num_tested
            at_columns += range(num_tested)
            completions += [row.completion] * num_tested
            positions += range(first, first + num_tested)
        if not at_rows:
            return
        device = draft.token_ids_RK.device
        rows_M, columns_M = _on(device, at_rows), _on(device, at_columns)
        drafted_M = draft.token_ids_RK[rows_M, columns_M]
        is_accepted_M = columns_M < _on(device, num_accepted)[rows_M]
        ids_MN, probs_MN, drawn_M = _draft_distribution(draft, rows_M, columns_M, drafted_M)
        parts = (torch.tensor(completions), torch.tensor(positions), drafted_M, is_accepted_M, drawn_M)
        self._evidence.append(DraftEvidence(*parts, ids_MN, probs_MN))


def _on(device: torch.device, numbers: Sequence[int]) -> Tensor:
    """On a device that nobody waits for."""
    tensor = torch.tensor(numbers)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def draft_lengths(draft: Draft) -> list[int]:
    """How many tokens each row drafted."""
    if draft.num_drafted_R is not None:
        return draft.num_drafted_R.tolist()
    return [draft.token_ids_RK.shape[1]] * len(draft.token_ids_RK)


def _draft_distribution(
    draft: Draft, rows_M: Tensor, columns_M: Tensor, drafted_M: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The most probable tokens of q, their probabilities, and that of the drafted one."""
    if draft.probs_RKV is None:
        ones_M = torch.ones(len(drafted_M), device=drafted_M.device)
        return drafted_M.unsqueeze(1), ones_M.unsqueeze(1), ones_M
    q_MV = draft.probs_RKV[rows_M, columns_M]
    drawn_M = q_MV.gather(1, drafted_M.unsqueeze(1)).squeeze(1)
    top = q_MV.topk(min(_MAX_KEPT_OF_DRAFT, q_MV.shape[1]), dim=1)
    return top.indices, top.values, drawn_M


def _record(
    index: int, draft: Draft | None, probs_JV: Tensor, new_tokens: Sequence[int], num_accepted: int, num_kept: int
) -> RoundRecord:
    """One row's part of a round."""
    emitted = new_tokens[num_accepted] if num_kept > num_accepted else None
    if draft is None or (num_drafted := draft_lengths(draft)[index]) == 0:
        return RoundRecord([], 0, emitted, [], [])
    drafted_K = draft.token_ids_RK[index, :num_drafted]
    q = [0.0] * num_drafted
    if draft.probs_RKV is not None:
        q = _log_probs(draft.probs_RKV[index, :num_drafted], drafted_K)
    p = _log_probs(probs_JV[:num_drafted], drafted_K)
    return RoundRecord(drafted_K.tolist(), min(num_accepted, num_kept), emitted, q, p)


def _log_probs(probs_KV: Tensor, token_ids_K: Tensor) -> list[float]:
    chosen = probs_KV.gather(1, token_ids_K.unsqueeze(1)).flatten()
    return chosen.clamp_min(_SMALLEST_PROBABILITY).log().tolist()
