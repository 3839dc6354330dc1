from pathlib import Path

import pytest

from cli.errors import CommandError
from cli.overrides import merged, parse, read_file
from contract.config import RunConfig
from contract.config.drafter import NgramDrafter, NoDrafter


def test_assignments_become_a_nested_mapping_with_yaml_values() -> None:
    assert parse(["grpo.num_steps=20", "grpo.kl_coefficient=1e-3", "drafter.kind=none", "a.b.c=[1, 2]", "x=null"]) == {
        "grpo": {"num_steps": 20, "kl_coefficient": 0.001},
        "drafter": {"kind": "none"},
        "a": {"b": {"c": [1, 2]}},
        "x": None,
    }


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse(["notes=a=b"]) == {"notes": "a=b"}


@pytest.mark.parametrize("assignment", ["grpo", "=3", "grpo..x=3", ".x=1"])
def test_what_is_no_assignment_is_named_with_the_mend(assignment: str) -> None:
    with pytest.raises(CommandError, match=r"write key.path=value") as caught:
        parse([assignment])
    assert assignment in str(caught.value)
    assert caught.value.code == 2


def test_a_value_cannot_be_a_group_too() -> None:
    with pytest.raises(CommandError, match="grpo was given a value before"):
        parse(["grpo=1", "grpo.num_steps=2"])


def test_merging_keeps_siblings_and_its_input() -> None:
    config = {"grpo": {"num_steps": 40, "group": 8}, "seed": 1}
    assert merged(config, {"grpo": {"num_steps": 2}, "seed": 5}) == {"grpo": {"num_steps": 2, "group": 8}, "seed": 5}
    assert config == {"grpo": {"num_steps": 40, "group": 8}, "seed": 1}


def test_another_kind_is_not_hindered_by_keys_of_the_former() -> None:
    file = read_file(Path(__file__).parents[3] / "examples" / "smoke.yaml")[1]
    launched = RunConfig.model_validate(merged(file, parse(["drafter.kind=none"])))
    assert launched.drafter == NoDrafter()
    lookup = RunConfig.model_validate(merged(file, parse(["drafter.kind=ngram"]))).drafter
    assert lookup == NgramDrafter(draft_length=3, draft_length_control="fixed")


def test_files_are_examples_or_bare_configurations(tmp_path: Path) -> None:
    example = tmp_path / "example.yaml"
    example.write_text("name: mine\ntitle: T\nconfig: {seed: 3}\n")
    bare = tmp_path / "bare.yaml"
    bare.write_text("seed: 4\n")
    assert read_file(example) == ("mine", {"seed": 3})
    assert read_file(bare) == ("bare", {"seed": 4})


@pytest.mark.parametrize(
    ("content", "complaint"), [("[1]", "holds no mapping"), ("a: [", "is not YAML"), ("config: 3", "`config` must be")]
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(CommandError, match=complaint) as caught:
        read_file(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        read_file(tmp_path / "none.yaml")
