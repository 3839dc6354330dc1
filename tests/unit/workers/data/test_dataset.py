"""A dataset task from its file to the prompts of each step."""

import json
import logging
from collections import Counter

import pytest

from contract.config import RunConfig
from contract.telemetry.metrics import METRICS
from workers.data.dataset import ShuffledProblems
from workers.data.open_task import open_task
from workers.data.problem import Problem


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"kind": "jsonl", "path": str(path)}


def sums(count, start=0):
    return [{"prompt": f"{a}+{a}", "answer": 2 * a} for a in range(start, start + count)]


@pytest.fixture
def opened(tmp_path, policy_folder):
    """Opens a task whose training rows are given, in a folder of the test's own."""

    def make(rows, seed=1, max_new_tokens=10, policy=None, source=None, **task):
        train = write(tmp_path / "train.jsonl", rows) | (source or {})
        config = {
            "seed": seed,
            "policy": {"kind": "checkpoint", "path": str(policy or policy_folder())},
            "task": {"kind": "dataset", "chat_template": "plain", "train": train, **task},
            "rollout": {"max_new_tokens": max_new_tokens},
        }
        return open_task(RunConfig.model_validate(config))

    return make


def prompts(problems):
    return [problem.prompt for problem in problems]


def test_every_epoch_has_every_row_once_in_an_order_of_its_own(opened):
    task = opened(sums(20))
    train = task.split("train").problems(0, 19 * 3)
    assert task.metrics["data/num_train_prompts"] == 19  # one of twenty is held out
    epochs = [prompts(train[start : start + 19]) for start in (0, 19, 38)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert all(len(set(epoch)) == 19 for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_position_has_the_same_problem_whatever_was_asked_before(opened):
    whole = opened(sums(30)).split("train").problems(0, 100)
    train = opened(sums(30)).split("train")
    for start in (57, 3, 90, 28):
        assert train.problems(start, 5) == whole[start : start + 5]


def test_the_seed_and_the_purpose_decide_the_order(opened):
    first, other = opened(sums(30)), opened(sums(30), seed=2)
    orders = [
        prompts(task.split(split).problems(0, 28))
        for task in (first, other)
        for split in ("train", "draft_pretraining")
    ]
    assert len({tuple(order) for order in orders}) == 4
    assert len({tuple(sorted(order)) for order in orders}) == 1  # the held-out rows depend on neither


def test_the_order_is_as_it_always_was():
    """A resumed run goes on in it, also after an upgrade."""
    train = ShuffledProblems([Problem(str(i), i) for i in range(8)], seed=3)
    assert [problem.answer for problem in train.problems(0, 16)] == [3, 4, 0, 7, 2, 1, 5, 6, 1, 0, 3, 2, 4, 7, 6, 5]


def test_held_out_rows_are_a_share_and_in_no_other_split(opened):
    task = opened(sums(40), validation={"kind": "held_out", "share_fraction": 0.25})
    held_out = prompts(task.split("validation").distinct(100))
    assert len(held_out) == len(set(held_out)) == 10
    for split in ("train", "draft_pretraining"):
        assert Counter(prompts(task.split(split).problems(0, 30))).keys() == {f"{a}+{a}" for a in range(40)} - {
            *held_out
        }


def test_more_rows_change_few_of_the_held_out(opened):
    share = {"kind": "held_out", "share_fraction": 0.2}
    before, after = (
        set(prompts(opened(sums(count), validation=share).split("validation").distinct(99))) for count in (40, 44)
    )
    assert len(before & after) >= 6


def test_a_validation_source_has_its_own_fields_and_its_prompts_leave_training(opened, tmp_path):
    rows = [{"problem": "3+3", "answer": "006"}, {"problem": "1+2", "answer": "003"}]
    validation = write(tmp_path / "validation.jsonl", rows) | {"prompt_template": "so {prompt} is "}
    task = opened(sums(5), validation=validation)
    assert {(p.prompt, p.answer) for p in task.split("validation").distinct(9)} == {
        ("so 3+3 is ", "006"),
        ("so 1+2 is ", "003"),
    }
    assert sorted(prompts(task.split("train").problems(0, 4))) == ["0+0", "1+1", "2+2", "4+4"]
    assert task.metrics["data/num_rows_in_validation"] == 1


def test_rows_that_are_left_out_are_counted_and_named(opened, caplog):
    caplog.set_level(logging.INFO)
    unusable = [
        {"prompt": "7+7"},
        {"prompt": "2+2", "answer": ""},
        {"answer": 3},
        {"prompt": [{"role": "assistant", "content": "hi"}], "answer": 3},
        {"prompt": "0+0", "answer": 9},
        {"prompt": "1+" * 20, "answer": 1},
    ]
    task = opened(unusable[:1] + sums(3) + unusable[1:], max_prompt_tokens=30)
    counts = {name.removeprefix("data/num_rows_"): n for name, n in task.metrics.items() if "rows" in name}
    assert counts == {"without_answer": 2, "without_prompt": 2, "duplicate": 1, "too_long": 1, "in_validation": 0}
    assert task.metrics.keys() <= METRICS.keys()
    said = "\n".join(record.message for record in caplog.records)
    assert "task.train has the layout prompt and answer: prompts in prompt, answers in answer." in said
    assert "2 rows of task.train have no answer; left out: rows 1, 5." in said
    assert "1 rows of task.train have a prompt longer than task.max_prompt_tokens; left out: rows 9." in said
    assert "The dataset has 2 prompts for training and 1 for validation." in said


def test_chat_messages_of_dapo_go_through_the_policys_template(opened, policy_folder, chat_template):
    rows = [
        {"prompt": [{"role": "user", "content": f"{a} plus {a}"}], "reward_model": {"ground_truth": str(2 * a)}}
        for a in (1, 2, 3)
    ]
    task = opened(
        rows,
        policy=policy_folder(chat_template.replace("<", "").replace(">", "")),
        source={"prompt_template": "what is {prompt}"},
        chat_template="policy",
    )
    problems = task.split("train").problems(0, 2) + task.split("validation").distinct(1)
    assert sorted((p.prompt, p.answer) for p in problems) == [
        (f"user: what is {a} plus {a}assistant: ", str(2 * a)) for a in (1, 2, 3)
    ]


def test_the_identity_changes_with_the_prompts_and_not_with_the_answers(opened):
    rows = sums(4)
    same = [row | {"answer": 7} for row in rows]
    identities = [opened(given).identity for given in (rows, same, sums(5))]
    assert identities[0] == identities[1] != identities[2]


@pytest.mark.parametrize(
    ("rows", "given", "said"),
    [
        ([], {}, r"task\.train\.path = .*train\.jsonl has no rows"),
        ([{"a": 1}], {}, r"task\.train\.prompt_field and task\.train\.answer_field must be given: .* fields a,"),
        (
            [{"prompt": "1+1"}, {"prompt": "2+2", "answer": None}],
            {},
            r"none of 2 rows can be used: 2 have no answer\. Prompts were looked for in prompt, answers in answer, of "
            r"the fields prompt, answer: set task\.train\.prompt_field and answer_field, or mend the rows",
        ),
        (
            sums(3),
            {"max_prompt_tokens": 2},
            r"none of 3 rows can be used: 3 have a prompt longer than task\.max_prompt",
        ),
        (sums(1), {}, r"task\.train has a single prompt.* give task\.validation a source"),
        (
            sums(9),
            {"max_new_tokens": 2046},
            r"the longest prompt has 3 tokens, .* more than the policy's 2,048 positions",
        ),
    ],
)
def test_data_of_no_use_is_an_error_with_field_value_and_mend(opened, rows, given, said):
    with pytest.raises(ValueError, match=said):
        opened(rows, **given)


def test_a_policy_that_is_not_there_is_named(opened, tmp_path):
    with pytest.raises(
        ValueError, match=r"no tokenizer\.json in .*nowhere: give the folder of a Hugging Face checkpoint"
    ):
        opened(sums(4), policy=tmp_path / "nowhere", chat_template="policy")


def test_positions_that_yarn_stretches_count(opened, policy_folder):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
    for key in ("rope_scaling", "rope_parameters"):
        opened(sums(4), policy=policy_folder(**{key: yarn}), max_new_tokens=8000)
    with pytest.raises(ValueError, match="the policy's 8,192 positions"):
        opened(sums(4), policy=policy_folder(rope_scaling=yarn), max_new_tokens=8190)
