"""docs/ci.md, followed word for word against the real service."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "ci.md").read_text()
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
Shell = Callable[[str], subprocess.CompletedProcess[str]]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


RUN, GATES, WORKFLOW, PLANT = _blocks("yaml")
TOKEN, GREEN, RED = (block for block in _blocks("sh") if "foredeck" in block and "curl" not in block)


@pytest.fixture
def shell(service, tmp_path: Path) -> Shell:
    """A user's shell in a repository, where the command line is installed already."""
    command = tmp_path / "bin" / "foredeck"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli.main "$@"\n')
    command.chmod(0o755)
    environment = service.environment | {"FOREDECK_TOKEN": service.admin_token}
    environment["PATH"] = f"{command.parent}:{os.environ['PATH']}"
    (tmp_path / "foredeck").mkdir()

    def run(text: str) -> subprocess.CompletedProcess[str]:
        argv = ["bash", "-e", "-c", re.sub(r"^pip install .*\n", "", text)]
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_from_a_token_to_a_red_build(shell: Shell, tmp_path: Path) -> None:
    assert shell(TOKEN).stdout.startswith("fdk_")
    (tmp_path / "foredeck" / "run.yaml").write_text(RUN)
    (tmp_path / "foredeck" / "gates.yaml").write_text(GATES)
    green = shell(GREEN)
    assert green.returncode == 0, green.stdout + green.stderr
    planted = re.sub(r"^  drafter:\n(    .*\n)+", PLANT, RUN, flags=re.MULTILINE)
    assert planted != RUN
    (tmp_path / "foredeck" / "run.yaml").write_text(planted)
    red = shell(RED)
    assert red.returncode == 6, red.stdout + red.stderr
    assert "2 of 3 gates passed" in red.stdout
    assert (tmp_path / "foredeck.xml").read_text().count("<failure") == 1
    assert "Gates failed" in (tmp_path / "foredeck.md").read_text()


def test_the_workflow_uses_the_action_as_it_is() -> None:
    (job,) = yaml.safe_load(WORKFLOW)["jobs"].values()
    given = job["steps"][-1]["with"]
    assert set(given) <= set(ACTION["inputs"])
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= set(given)


def test_the_python_example_runs(service) -> None:
    (code,) = _blocks("python")
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=service.environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("passed ")
