import json
import subprocess
import sys

import pytest

from cli.main import run


@pytest.mark.parametrize(
    "arguments", [["nope"], ["wait"], ["launch", "x.yaml", "--timeout", "soon"], ["runs", "--limit", "0"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Usage: foredeck" in capsys.readouterr().err


def test_help_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for command in (
        "launch",
        "runs",
        "show",
        "logs",
        "stop",
        "clone",
        "draft",
        "login",
        "token",
        "up",
        "status",
        "down",
        "demo",
    ):
        assert command in out


def test_a_service_that_is_down_exits_with_5_and_says_so_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREDECK_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("FOREDECK_TOKEN", "fdk_x")
    monkeypatch.setenv("FOREDECK_PATIENCE_S", "0.1")
    assert run(["runs", "--json"]) == 5
    printed = json.loads(capsys.readouterr().out)
    assert printed["code"] == 5
    assert "http://127.0.0.1:1 does not answer" in printed["error"]


def test_the_base_install_is_enough_to_talk_to_a_service() -> None:
    code = (
        "import sys, cli.main; print(*[m for m in ('backend', 'torch', 'ray', 'psutil', 'redis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
