import pytest
import torch

from workers.data.batch import select_rows, to_training_batch
from workers.rollout.engine import Completion

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


def test_missing_logprobs_are_refused():
    with pytest.raises(ValueError, match="completion 0 has 2 tokens but 1"):
        to_training_batch(PROMPTS, [Completion(0, [8, 1], [-0.5], is_truncated=False)], 1.0)
