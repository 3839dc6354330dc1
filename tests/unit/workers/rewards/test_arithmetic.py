import pytest

from workers.rewards.arithmetic import arithmetic_reward


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
