import pytest
import torch

from workers.algo.sampling import Truncation
from workers.data.batch import select_rows, to_training_batch
from workers.rollout.engine import Completion, DraftEvidence

PROMPTS = [[5, 6], [7]]
COMPLETIONS = [
    Completion(0, [8, 1], [-0.5, -0.25], is_truncated=False),
    Completion(1, [9, 9, 9, 1], [-1.0, -2.0, -3.0, -4.0], is_truncated=False),
]


def test_rows_are_prompt_then_response_then_padding():
    batch = to_training_batch(PROMPTS, COMPLETIONS, 0.9)
    assert batch.token_ids_BT.tolist() == [[5, 6, 8, 1, 0], [7, 9, 9, 9, 1]]
    assert batch.response_mask_BT.tolist() == [[0, 0, 1, 1, 0], [0, 1, 1, 1, 1]]
    assert batch.engine_logprobs_BT.tolist() == [[0, 0, -0.5, -0.25, 0], [0, -1, -2, -3, -4]]
    assert batch.temperature == 0.9
    assert batch.token_ids_BT.dtype == torch.int64


def test_selected_rows_lose_common_padding_only():
    batch = to_training_batch(PROMPTS, COMPLETIONS, 1.0)
    short = select_rows(batch, torch.tensor([0]))
    assert short.token_ids_BT.tolist() == [[5, 6, 8, 1]]
    assert select_rows(batch, torch.tensor([1, 0])).engine_logprobs_BT.tolist() == [
        [0, -1, -2, -3, -4],
        [0, 0, -0.5, -0.25, 0],
    ]


def evidence():
    """Two tested drafts in each response, the draft's probability telling them apart."""
    of = torch.tensor([0, 1, 0, 1])
    q = torch.tensor([0.1, 0.2, 0.3, 0.4])
    return DraftEvidence(of, of * 0, of + 5, q > 0.2, q, torch.stack([of, of], 1), torch.stack([q, q], 1))


def test_what_the_audit_needs_goes_with_the_rows():
    batch = to_training_batch(PROMPTS, COMPLETIONS, 1.0, Truncation(top_p=0.9), evidence=evidence(), audited=[1])
    part = select_rows(batch, torch.tensor([1, 0]))
    assert part.truncation == batch.truncation == Truncation(top_p=0.9)
    assert (batch.is_audited_B.tolist(), part.is_audited_B.tolist()) == ([False, True], [True, False])
    assert part.evidence.completion_M.tolist() == [1, 0, 1, 0]
    assert part.evidence.draft_probs_M.tolist() == batch.evidence.draft_probs_M.tolist()
    short = select_rows(batch, torch.tensor([1, 1])).evidence
    assert short.completion_M.tolist() == [1, 1]  # once, for the row that stands last
    assert short.draft_probs_M.tolist() == pytest.approx([0.2, 0.4])
    assert short.top_ids_MN.tolist() == [[1, 1], [1, 1]]


def test_without_an_audit_there_is_none():
    batch = to_training_batch(PROMPTS, COMPLETIONS, 1.0)
    part = select_rows(batch, torch.tensor([0]))
    assert (part.evidence, part.is_audited_B, part.truncation.is_active) == (None, None, False)


def test_missing_logprobs_are_refused():
    with pytest.raises(ValueError, match="completion 0 has 2 tokens but 1"):
        to_training_batch(PROMPTS, [Completion(0, [8, 1], [-0.5], is_truncated=False)], 1.0)
