"""docs/ci/gitlab.yml, its script run as GitLab's runner would run it, against the real service."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

REPOSITORY = Path(__file__).parents[3]
DOCUMENT = yaml.safe_load((REPOSITORY / "docs" / "ci" / "gitlab.yml").read_text())
JOB = DOCUMENT["foredeck"]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_job(service, tmp_path: Path, file) -> Run:
    """run_job(**variables): the job's script in a repository of its own; installing is that of test_action.py."""
    command = tmp_path / ".foredeck" / "bin" / "foredeck"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli.main "$@"\n')
    command.chmod(0o755)

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        predefined = {
            "CI_COMMIT_REF_NAME": "main",
            "CI_COMMIT_SHA": "c0ffee",
            "CI_PIPELINE_ID": "5",
            "CI_PROJECT_ID": "1",
            "CI_PROJECT_PATH": "our/policy",
        }
        settings = DOCUMENT["variables"] | JOB["variables"] | {"FOREDECK_CONFIG": "run.yaml"}
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(JOB["script"])],
            cwd=tmp_path,
            env={**service.environment, "PATH": os.environ["PATH"], **settings, **predefined, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def _gates(tmp_path: Path, text: str) -> None:
    (tmp_path / "foredeck").mkdir(exist_ok=True)
    (tmp_path / "foredeck" / "gates.yaml").write_text(text)


@pytest.mark.parametrize(("limit", "code"), [("2.8", 0), ("3.2", 6)])
def test_the_job_ends_like_the_gates_and_leaves_its_artifacts(
    run_job: Run, tmp_path: Path, limit: str, code: int
) -> None:
    _gates(tmp_path, f"- acceptance_length >= {limit}\n")
    done = run_job()
    assert done.returncode == code, done.stdout + done.stderr
    junit = ElementTree.parse(tmp_path / JOB["artifacts"]["reports"]["junit"]).getroot()
    assert len(junit.findall(".//failure")) == int(code == 6)
    assert "Gates" in (tmp_path / JOB["artifacts"]["paths"][0]).read_text()


def test_the_run_is_labelled_and_a_fork_is_told_apart(service, run_job: Run, tmp_path: Path) -> None:
    _gates(tmp_path, "- reward >= 0.5\n")
    evil = "$(touch pwned)`touch pwned`\"';main"
    done = run_job(
        CI_MERGE_REQUEST_SOURCE_PROJECT_ID="2", CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=evil, CI_MERGE_REQUEST_IID="9"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run_id,) = set(re.findall(r"/runs/([0-9a-f-]{36})", done.stdout))
    labels = json.loads(service.foredeck("show", run_id, "--json").stdout)["labels"]
    assert labels == {
        "repository": "our/policy",
        "branch": f"fork/2:{evil}",
        "commit": "c0ffee",
        "merge_request": "9",
        "pipeline": "5",
    }
    assert not list(tmp_path.glob("**/pwned"))


def test_artifacts_are_kept_of_red_builds_too() -> None:
    assert JOB["artifacts"]["when"] == "always"
