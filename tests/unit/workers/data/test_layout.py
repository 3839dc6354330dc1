import pytest

from contract.config.dataset import JsonlSource
from workers.data.layout import answer_of, messages_of, recognise, value_at

DAPO = {
    "data_source": "math_dapo",
    "prompt": [{"role": "user", "content": "How many?"}],
    "ability": "MATH",
    "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"},
    "extra_info": {"index": "9a9b6eb4"},
}
AIME = {"id": 60, "problem": "Every morning", "solution": "204", "answer": "204", "url": "", "year": "2024"}


def source(**given):
    return JsonlSource(path="/data/a.jsonl", **given)


@pytest.mark.parametrize(
    ("row", "known_as", "fields"),
    [
        (DAPO, "DAPO-Math-17K", ("prompt", "reward_model.ground_truth")),
        (AIME, "AIME-2024", ("problem", "answer")),
        ({"ID": "2024-II-4", "Problem": "Let", "Solution": "33", "Answer": 33}, "AIME-2024", ("Problem", "Answer")),
        ({"question": "a", "answer": "#### 1"}, "question and answer", ("question", "answer")),
        ({"prompt": "a", "answer": 1}, "prompt and answer", ("prompt", "answer")),
        ({"text": "a", "code": "b", "test_list": ["assert 1"]}, "MBPP", ("text", "test_list")),
    ],
)
def test_known_layouts_are_recognised(row, known_as, fields):
    layout = recognise(row, source(), "task.train")
    assert (layout.known_as, (layout.prompt_field, layout.answer_field)) == (known_as, fields)


def test_a_field_that_is_named_counts():
    layout = recognise(AIME, source(answer_field="solution"), "task.train")
    assert (layout.prompt_field, layout.answer_field) == ("problem", "solution")
    layout = recognise({"a": 1}, source(prompt_field="x", answer_field="y.z"), "task.train")
    assert (layout.prompt_field, layout.answer_field, layout.known_as) == ("x", "y.z", None)


def test_an_unknown_layout_is_told_with_its_fields():
    with pytest.raises(
        ValueError, match=r"task\.train\.prompt_field and task\.train\.answer_field must be given: .* a, b"
    ):
        recognise({"a": 1, "b": 2}, source(), "task.train")
    with pytest.raises(ValueError, match=r"^task\.train\.answer_field must be given"):
        recognise({"a": 1, "b": 2}, source(prompt_field="a"), "task.train")


def test_a_dot_leads_into_an_object():
    assert value_at(DAPO, "reward_model.ground_truth") == "34"
    assert value_at(DAPO, "reward_model.missing") is None
    assert value_at(DAPO, "ability.missing") is None
    assert value_at({"a.b": 1}, "a.b") == 1


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        ("Hi", [{"role": "user", "content": "Hi"}]),
        (DAPO["prompt"], DAPO["prompt"]),
        ([{"role": "user", "content": "Hi", "name": None}], [{"role": "user", "content": "Hi"}]),
        ("  ", None),
        (None, None),
        (5, None),
        ([], None),
        ([{"role": "assistant", "content": "Hi"}], None),
        ([{"role": "user", "content": ""}], None),
        ([{"role": "pirate", "content": "Hi"}], None),
        (["Hi"], None),
    ],
)
def test_a_prompt_is_a_text_or_messages_that_end_with_the_users(prompt, messages):
    assert messages_of(prompt) == messages


@pytest.mark.parametrize(
    ("value", "mark", "answer"),
    [
        (" 34 ", "", "34"),
        (34, "", 34),
        (0, "", 0),
        (["assert 1"], "", ["assert 1"]),
        ("2 + 2 = 4 #### 4", "####", "4"),
        ("it is 4", "####", None),
        ("", "", None),
        ("  ", "", None),
        (None, "", None),
        ([], "", None),
    ],
)
def test_an_answer_is_what_is_not_empty(value, mark, answer):
    assert answer_of(value, mark) == answer
