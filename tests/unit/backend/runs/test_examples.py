import pytest

from backend.runs.examples import load
from backend.settings import REPOSITORY
from contract.config import RunConfig


def test_every_shipped_example_is_valid_and_says_what_it_is():
    folder = REPOSITORY / "examples"
    examples = load(folder)
    assert [example.name for example in examples] == [path.stem for path in sorted(folder.glob("*.yaml"))]
    for example in examples:
        assert example.title
        assert example.description
        assert RunConfig.model_validate(example.config).model_dump(mode="json") == example.config


@pytest.mark.parametrize(
    "text", ["a: [", "", "[]", "name: x", "config: {seed: -1}", "config: {typo: 1}", "name: [1]\nconfig: {}"]
)
def test_a_broken_one_is_left_out_and_named(tmp_path, caplog, text):
    (tmp_path / "broken.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text("config: {seed: 7}")
    (example,) = load(tmp_path)
    assert (example.name, example.config["seed"]) == ("good", 7)
    assert "an example is broken" in caplog.text
