import pytest

from workers.rewards.math_answer import math_reward, stated_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"thus \boxed{42}", "42"),
        (r"\boxed{41}, no: \boxed{42}.", "42"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        ("Answer: 42", "42"),
        ("**Answer:** $42$.\nDone.", "42"),
        ("answer:\n 42", "42"),
        (r"\boxed{41} Answer: 42", "42"),  # what comes last
        ("it is 42", None),
        (r"\boxed{42", None),
        (r"\boxed", None),
        ("Answer:", None),
        (r"\boxed{}", None),
    ],
)
def test_the_stated_answer_is_the_last_box_or_what_follows_the_last_answer(text, answer):
    assert stated_answer(text) == answer


@pytest.mark.parametrize(
    ("stated", "known", "reward"),
    [
        ("42", "42", 1.0),
        ("42", 42, 1.0),
        ("0.75", r"\frac{3}{4}", 1.0),
        (r"\frac{2}{4}", "1/2", 1.0),
        ("1,000", "1000", 1.0),
        ("x = 5", "5", 1.0),
        (r"\sqrt{8}", r"2\sqrt{2}", 1.0),
        ("034", "34", 1.0),  # as AIME writes its answers
        ("(1, 2)", "(2, 1)", 0.0),
        ("41", "42", 0.0),
        (r"\frac{1}{0}", "42", 0.0),
        ("nothing", "42", 0.0),
    ],
)
def test_equal_is_what_is_mathematically_equal(stated, known, reward):
    assert math_reward(f"\\boxed{{{stated}}}", known) == reward


def test_without_a_stated_answer_there_is_no_reward():
    assert math_reward("it is 42", "42") == 0.0


def test_a_known_answer_that_is_nothing_is_named():
    with pytest.raises(ValueError, match="the dataset's answer ' ' cannot be read as mathematics"):
        math_reward(r"\boxed{1}", " ")
