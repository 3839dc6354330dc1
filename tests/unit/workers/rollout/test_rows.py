import pytest

from workers.rollout.rows import Row

EOS = frozenset({0, 9})


@pytest.fixture
def row():
    """A prompt of two tokens, at most four new ones."""
    return Row(completion=3, token_ids=[5, 6], num_prompt_tokens=2, max_tokens=6)


def append(row, tokens):
    return row.append(tokens, [-float(token) for token in tokens], EOS)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2], ([1, 2], False)),
        ([1, 9, 3], ([1, 9], True)),
        ([0, 1, 0], ([0], True)),
        ([1, 2, 3, 4], ([1, 2, 3, 4], True)),
        ([1, 2, 3, 4, 0], ([1, 2, 3, 4], True)),
        ([], ([], False)),
    ],
)
def test_tokens_count_up_to_the_first_end_token_and_the_limit(row, tokens, expected):
    kept, is_complete = append(row, tokens)
    assert (row.response, is_complete) == expected
    assert kept == len(row.response)
    assert row.logprobs == [-token for token in row.response]


def test_an_end_token_behind_the_limit_does_not_count(row):
    append(row, [1, 2, 3])
    assert append(row, [4, 0]) == (1, True)
    assert row.response == [1, 2, 3, 4]


def test_end_tokens_of_the_prompt_end_nothing():
    row = Row(0, [9, 0], 2, 6)
    assert append(row, [1]) == (1, False)
