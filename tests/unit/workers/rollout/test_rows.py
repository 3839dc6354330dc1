import pytest
import torch

from workers.rollout.rows import Rows

EOS = torch.tensor([0, 9])


@pytest.fixture
def rows():
    """Three rows of prompts of 2, 1 and 2 tokens, at most 4 new ones each."""
    rows = Rows(3, 12, EOS)
    prompts = torch.tensor([[5, 6], [7, 0], [8, 8]])
    rows.place(torch.arange(3), [10, 11, 12], prompts, torch.tensor([2, 1, 2]), 4)
    return rows


def append(rows, tokens, num_new):
    logprobs = -torch.tensor(tokens).float()
    return rows.append(slice(rows.num_live), torch.tensor(tokens), logprobs, torch.tensor(num_new))


def test_tokens_count_up_to_the_end_token_and_the_number_given(rows):
    appended = append(rows, [[1, 2, 3], [1, 9, 3], [1, 2, 0]], [2, 3, 2])
    assert appended.num_kept_R.tolist() == [2, 2, 2]
    assert appended.is_finished_R.tolist() == [False, True, False]
    assert rows.response(0, 2) == ([1, 2], [-1.0, -2.0])
    assert rows.response(1, 1) == ([1, 9], [-1.0, -9.0])


def test_tokens_count_up_to_the_limit(rows):
    append(rows, [[1, 2, 3]] * 3, [3, 3, 3])
    appended = append(rows, [[4, 5, 6], [0, 5, 6], [4, 0, 6]], [3, 3, 3])
    assert appended.num_kept_R.tolist() == [1, 1, 1]
    assert appended.is_finished_R.tolist() == [True, True, True]
    assert [rows.response(row, length)[0] for row, length in enumerate([2, 1, 2])] == [
        [1, 2, 3, 4],
        [1, 2, 3, 0],
        [1, 2, 3, 4],
    ]
    assert (rows.is_eos(0), rows.is_eos(4), rows.is_eos(9)) == (True, False, True)


def test_some_rows_alone_can_be_appended_to(rows):
    rows.append(torch.tensor([2]), torch.tensor([[3]]), torch.tensor([[-0.5]]), torch.tensor([1]))
    assert rows.lengths_R.tolist() == [2, 1, 3]
    assert rows.response(2, 2) == ([3], [-0.5])


def test_dropping_a_row_moves_the_last_one_there(rows):
    append(rows, [[1], [2], [3]], [1, 1, 1])
    rows.drop_last(0)
    assert rows.num_live == 2
    assert rows.completions == [12, 11]
    assert rows.response(0, 2)[0] == [3]
    rows.drop_last(1)
    assert rows.completions == [12]
    assert rows.token_ids_RT.shape[0] == 1


def test_a_freed_row_takes_a_new_completion(rows):
    append(rows, [[1, 2, 3]] * 3, [3, 3, 3])
    rows.place(torch.tensor([1]), [13], torch.tensor([[4, 4]]), torch.tensor([2]), 4)
    assert rows.completions == [10, 13, 12]
    assert rows.lengths_R.tolist() == [5, 2, 5]
    assert append(rows, [[1], [1], [1]], [1, 1, 1]).is_finished_R.tolist() == [True, False, True]
