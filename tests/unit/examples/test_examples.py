"""The shipped examples are valid, complete and distinct."""

from pathlib import Path

import pytest
import yaml

from contract.config import RunConfig

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
