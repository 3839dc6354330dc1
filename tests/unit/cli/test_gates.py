from pathlib import Path

import pytest

from cli import gates
from cli.errors import CommandError


def test_options_and_files_become_gates_and_the_baseline_goes_where_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text(
        "gates:\n- generation_speedup >= 1.5\n"
        "- {assertion: reward >= baseline - 0.02, baseline: 'run:1', confidence: 0.9, name: learns}\n"
    )
    found = gates.read(["acceptance_length >= 0.9 * baseline"], file, "label:branch=main,os=a=b")
    assert [(gate.assertion, gate.baseline) for gate in found] == [
        ("acceptance_length >= 0.9 * baseline", "label:branch:main,os:a=b"),
        ("generation_speedup >= 1.5", None),
        ("reward >= baseline - 0.02", "run:1"),
    ]
    assert (found[2].name, found[2].confidence) == ("learns", 0.9)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("label:branch:main", "label:branch:main"),
        ("label:branch=main", "label:branch:main"),
        ("label:a=b:c,d:e=f", "label:a:b:c,d:e=f"),
        ("origin", "origin"),
        ("run:a=b", "run:a=b"),
    ],
)
def test_a_label_may_be_written_as_where_it_is_set(given: str, sent: str) -> None:
    assert gates.read(["reward >= baseline"], None, given)[0].baseline == sent


def test_a_list_alone_is_a_gates_file(tmp_path: Path) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text("- reward >= 0.5\n")
    assert [gate.assertion for gate in gates.read(None, file, None)] == ["reward >= 0.5"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gates: {a: 1}", "must hold a list of gates"),
        ("- {assert: x}", r"gates\.0\.assertion: Field required"),
        ("- {assertion: x, confidnce: 1}", r"gates\.0\.confidnce: Extra inputs"),
        ("- [", "cannot be read"),
    ],
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "gates.yaml"
    file.write_text(text)
    with pytest.raises(CommandError, match=said) as caught:
        gates.read(None, file, None)
    assert str(file) in str(caught.value)


def test_a_baseline_that_no_gate_speaks_of_is_refused() -> None:
    with pytest.raises(CommandError, match="no gate speaks of it"):
        gates.read(["reward >= 0.5"], None, "label:branch=main")
