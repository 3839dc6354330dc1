import pytest

from workers.rewards.exact import exact_reward


@pytest.mark.parametrize(
    ("text", "answer", "reward"),
    [
        ("so #### 42", "42", 1.0),
        ("####42\n", 42, 1.0),
        ("#### 41 #### 42", "42", 1.0),  # the last mark counts
        ("#### 42 #### 41", "42", 0.0),
        ("42", "42", 0.0),
        ("#### 42 or so", "42", 0.0),
        ("#### two words", " two words ", 1.0),
        ("####", "42", 0.0),
        ("", "", 0.0),
    ],
)
def test_only_the_answer_after_the_last_mark_is_rewarded(text, answer, reward):
    assert exact_reward(text, answer, "####") == reward
