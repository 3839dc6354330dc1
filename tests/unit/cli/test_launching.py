import json
from pathlib import Path

import pytest

from cli.main import run


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "run.yaml"
    path.write_text("config: {}\n")
    return str(path)


@pytest.mark.parametrize("option", [["--timeout", "5"], ["--junit", "x"], ["--summary", "x"], ["--stop-on-interrupt"]])
def test_what_comes_of_waiting_is_refused_where_nobody_waits(
    file: str, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["launch", file], ["clone", "a"]):
        assert run([*command, *option, "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["error"] == f"{option[0]}: only with --wait or --follow."


@pytest.mark.parametrize("arguments", [[], ["FILE", "--example", "smoke"]])
def test_a_launch_names_a_file_or_an_example(
    file: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [file if each == "FILE" else each for each in arguments]
    assert run(["launch", *given, "--json"]) == 2
    assert "either FILE" in json.loads(capsys.readouterr().out)["error"]
