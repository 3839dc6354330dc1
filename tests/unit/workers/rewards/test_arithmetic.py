import pytest

from workers.data.tokenizer import character_tokenizer
from workers.rewards.arithmetic import arithmetic_reward, completion_reward
from workers.rollout.engine import Completion


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        ("so 1+2 >3;#139", 1.0),
        ("#138#139", 1.0),  # the last mark counts
        ("#139#138", 0.0),
        ("139", 0.0),
        ("#1390", 0.0),
        ("#0139", 0.0),
        ("#139 ", 0.0),
        ("#139;so", 0.0),
        ("#", 0.0),
        ("", 0.0),
    ],
)
def test_only_the_exact_answer_after_the_last_mark_is_rewarded(response, reward):
    assert arithmetic_reward(response, 139) == reward


@pytest.mark.parametrize(
    ("between", "is_truncated", "reward"),
    [([], False, 1.0), ([], True, 0.0), (["pad"], False, 0.0), (["eos"], False, 0.0)],
)
def test_only_a_response_that_ended_after_its_answer_is_rewarded(between, is_truncated, reward):
    tokenizer = character_tokenizer()
    special = {"pad": tokenizer.pad_id, "eos": tokenizer.eos_id}
    answer = tokenizer.encode("#139")
    token_ids = [*answer[:2], *(special[name] for name in between), *answer[2:]]
    if not is_truncated:
        token_ids.append(tokenizer.eos_id)
    completion = Completion(0, token_ids, [0.0] * len(token_ids), is_truncated)
    assert completion_reward(completion, tokenizer, 139) == reward


def test_a_response_cut_right_after_a_digit_has_not_ended():
    tokenizer = character_tokenizer()
    token_ids = tokenizer.encode("#1390")
    assert completion_reward(Completion(0, token_ids, [0.0] * 5, is_truncated=True), tokenizer, 139) == 0.0
