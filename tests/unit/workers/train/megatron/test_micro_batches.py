"""What ranks read of a batch, hand-computed."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from tests.unit.workers.train.megatron.cases import make_batch
from workers.train.megatron.micro_batches import arrange, cut, lengths
from workers.train.trainer import TrainingBatch

CPU = torch.device("cpu")


@pytest.fixture
def batch():
    """Responses 5 6 after the prompt 1 2, and 7 after 3 4."""
    token_ids = torch.tensor([[1, 2, 5, 6], [3, 4, 7, 0]])
    mask = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 0]])
    return TrainingBatch(token_ids, mask, -mask, 1.0)


def test_padded_responses(batch):
    seen = arrange(batch, torch.tensor([0, 1]), pack=False, multiple=1, device=CPU)
    assert seen.token_ids.tolist() == [[1, 2, 5, 6], [3, 4, 7, 0]]
    assert seen.position_ids.tolist() == [[0, 1, 2, 3]] * 2
    assert seen.ends is None
    assert seen.sources_R.tolist() == [1, 2, 5]
    assert seen.targets_R.tolist() == [5, 6, 7]
    assert seen.scattered(torch.tensor([0.1, 0.2, 0.3])).tolist() == [
        [0, 0, pytest.approx(0.1), pytest.approx(0.2)],
        [0, 0, pytest.approx(0.3), 0],
    ]
    assert seen.ordinals_BT()[[0, 0, 1], [2, 3, 2]].tolist() == [0, 1, 2]


def test_packed_responses(batch):
    seen = arrange(batch, torch.tensor([1, 0]), pack=True, multiple=4, device=CPU)
    assert seen.token_ids.tolist() == [[3, 4, 7, 1, 2, 5, 6, 0]]
    assert seen.position_ids.tolist() == [[0, 1, 2, 0, 1, 2, 3, 0]]
    assert seen.ends.tolist() == [0, 3, 7, 8]
    assert seen.sources_R.tolist() == [1, 4, 5]
    assert seen.targets_R.tolist() == [7, 5, 6]


@pytest.mark.parametrize("pack", [False, True])
def test_positions_divide_by_what_the_sequence_is_cut_into(batch, pack):
    for multiple in (1, 2, 3, 8):
        seen = arrange(batch, torch.tensor([0, 1]), pack=pack, multiple=multiple, device=CPU)
        assert seen.token_ids.shape[1] % multiple == 0
        assert seen.token_ids.flatten()[seen.sources_R + 1].tolist() == seen.targets_R.tolist()


@pytest.mark.parametrize("pack", [False, True])
def test_no_responses_are_something_to_read_that_scores_nothing(batch, pack):
    seen = arrange(batch, torch.tensor([], dtype=torch.int64), pack=pack, multiple=2, device=CPU)
    assert seen.part is None
    assert seen.token_ids.shape == (1, 2)
    assert len(seen.sources_R) == 0


@pytest.mark.parametrize("num_shares", [1, 2, 3])
def test_every_response_is_on_one_rank_once_and_ranks_have_as_many_micro_batches(num_shares):
    batch = make_batch()
    cuts = cut(batch, torch.tensor([6, 0, 2, 3, 5]), 2, num_shares)
    assert all(len(shares) == num_shares for shares in cuts)
    assert sorted(torch.cat([rows for shares in cuts for rows in shares]).tolist()) == [0, 2, 3, 5, 6]
    assert max(len(rows) for shares in cuts for rows in shares) == 2
    long = [lengths(batch)[torch.cat(shares)].tolist() for shares in cuts]
    assert all(max(earlier) <= min(later) for earlier, later in pairwise(long))


def test_what_is_given_beside_the_tokens_goes_with_the_rows():
    batch = replace(make_batch(), is_audited_B=torch.arange(7) % 2 == 0)
    seen = arrange(batch, torch.tensor([4, 1]), pack=False, multiple=1, device=CPU)
    assert seen.part.is_audited_B.tolist() == [True, False]
    assert seen.part.evidence.completion_M.tolist() == [0]
    assert torch.equal(seen.part.engine_logprobs_BT[0], batch.engine_logprobs_BT[4])
