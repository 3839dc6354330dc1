"""The shipped examples are valid, complete and distinct."""

from pathlib import Path

import pytest
import yaml

from contract.config import RunConfig
from contract.sizing.memory import estimate_memory
from workers.data.layout import answer_of, messages_of, value_at
from workers.data.rows import read_rows
from workers.rewards.math_answer import math_reward

FILES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
DOCUMENTS = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_example_is_a_named_valid_configuration(name):
    document = DOCUMENTS[name]
    assert list(document) == ["name", "title", "description", "config"]
    assert document["name"] == name
    RunConfig.model_validate(document["config"])


def test_the_baseline_differs_from_the_demo_in_speculation_only():
    eagle, plain = (DOCUMENTS[f"arithmetic-{kind}"]["config"] for kind in ("eagle3", "autoregressive"))
    assert plain == {key: value for key, value in eagle.items() if key != "probe"} | {"drafter": {"kind": "none"}}


ON_GPUS = [name for name, document in DOCUMENTS.items() if document["config"].get("resources", {}).get("gpus_per_node")]


@pytest.mark.parametrize("name", ON_GPUS)
def test_an_example_on_gpus_states_the_memory_that_is_estimated(name):
    estimate = estimate_memory(RunConfig.model_validate(DOCUMENTS[name]["config"]))
    assert estimate is not None
    sizes = [(device.role, f"{device.total_gib:.0f} GiB") for device in estimate.devices]
    stated = sizes[0][1] if len(sizes) == 1 else ", ".join(" ".join(size) for size in sizes)
    assert f"Expected memory: {stated} on each GPU." in DOCUMENTS[name]["description"]


def test_there_is_an_example_of_every_size():
    gpus = {RunConfig.model_validate(DOCUMENTS[name]["config"]).resources.gpus_per_node for name in ON_GPUS}
    assert gpus >= {1, 4, 8}
    assert len(ON_GPUS) >= 5


def test_the_shipped_data_is_what_its_example_reads_and_its_answers_are_judged():
    source = RunConfig.model_validate(DOCUMENTS["own-data"]["config"]).task.train
    file = Path(__file__).parents[3] / "examples" / "data" / Path(source.path).name
    rows = list(read_rows(source.model_copy(update={"path": str(file)}), "task.train"))
    prompts = [messages_of(value_at(row.values, source.prompt_field)) for row in rows]
    answers = [answer_of(value_at(row.values, source.answer_field), source.answer_mark) for row in rows]
    assert len({prompt[0]["content"] for prompt in prompts if prompt}) == len(rows) == 64
    for answer, other in zip(answers, [*answers[1:], "-1"], strict=True):
        assert math_reward(f"so \\boxed{{{answer}}}", answer) == 1
        assert math_reward(f"so \\boxed{{{other}+100}}", answer) == 0
