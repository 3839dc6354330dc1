"""action.yml, step by step, with bash and the real service, as GitHub's runner would run it."""

import html
import json
import os
import re
import shutil
import signal
import site
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

REPOSITORY = Path(__file__).parents[3]
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text())
STEPS = {step.get("id", step["name"]): step for step in ACTION["runs"]["steps"]}
INSTALL, *REST = STEPS.values()
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The action's own, as the runner makes one."""
    folder = tmp_path_factory.mktemp("action")
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
    for name in ("contract", "foredeck", "cli", "tools", "backend", "workers"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=left_out)
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RUNNER_TEMP after the first step, which finds what it would download among this environment's packages."""
    temp = tmp_path_factory.mktemp("temp")
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": site.getsitepackages()[0]}
    paths = {"GITHUB_ACTION_PATH": str(checkout), "RUNNER_TEMP": str(temp), "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", INSTALL["run"]], env=paths | offline, check=True)
    return temp


@dataclass
class Job:
    """A job of a workflow with one use of the action in it."""

    folder: Path
    environment: dict[str, str]
    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    printed: str = ""

    def run(self, cancel_at: str | None = None, before_judge: Callable[[], None] = lambda: None) -> int:
        """The exit code of the first step that failed; the named step is cancelled once it has said something."""
        code = 0
        for name, step in STEPS.items():
            is_due = self._holds(step["if"]) if "if" in step else not code
            if is_due and step is not INSTALL:
                if name == "judge":
                    before_judge()
                ended = self._step(step, name == cancel_at)
                code = code or ended
        return code

    def output(self, name: str) -> str:
        return self._filled(ACTION["outputs"][name]["value"])

    @property
    def summary(self) -> str:
        return html.unescape((self.folder / "summary").read_text())

    @property
    def annotations(self) -> list[str]:
        return [line for line in self.printed.splitlines() if line.startswith("::error")]

    def _step(self, step: dict[str, Any], is_to_be_cancelled: bool) -> int:
        output = self.folder / "output"
        output.write_text("")
        files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.folder / "summary")}
        own = {name: self._filled(text) for name, text in step.get("env", {}).items()}
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env=self.environment | files | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            self.printed += line
            if is_to_be_cancelled and "/runs/" in line:
                process.send_signal(signal.SIGINT)
        code = process.wait()
        process.stdout.close()
        self.outputs[step.get("id", "")] = _parsed(output.read_text())
        return code

    def _filled(self, text: str) -> str:
        return EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _value(self, expression: str) -> str:
        """The first that is not empty of `inputs.x || steps.x.outputs.y`."""
        return next(filter(None, map(self._named, expression.split("||"))), "")

    def _named(self, expression: str) -> str:
        kind, name, *rest = expression.strip().split(".")
        if kind == "inputs":
            return self.inputs.get(name, ACTION["inputs"][name].get("default", ""))
        assert kind == "steps"
        assert rest[0] == "outputs"
        return self.outputs.get(name, {}).get(rest[1], "")

    def _holds(self, condition: str) -> bool:
        match = re.fullmatch(r"always\(\) && (\S+) != ''", condition)
        assert match
        return self._value(match[1]) != ""


def _parsed(text: str) -> dict[str, str]:
    """Lines between `name<<delimiter` and the delimiter."""
    return {
        name: value for name, _, value in re.findall(r"^([\w-]+)<<(\w+)\n(.*?)\n\2$", text, re.DOTALL | re.MULTILINE)
    }


@pytest.fixture
def job(service, installed: Path, checkout: Path, tmp_path: Path, file):
    """job(event={}, **inputs): in a repository that holds run.yaml."""

    def make(event: dict[str, Any] | None = None, **inputs: str) -> Job:
        (tmp_path / "event.json").write_text(json.dumps(event or {}))
        (tmp_path / "summary").write_text("")
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": site.getsitepackages()[0],
            "GITHUB_ACTION_PATH": str(checkout),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "our/policy",
            "GITHUB_REF_NAME": "main",
            "GITHUB_SHA": "c0ffee",
            "GITHUB_RUN_ID": "77",
            "RUNNER_TEMP": str(installed),
        }
        given = {"server": service.url, "token": service.token, "config": "run.yaml", **inputs}
        return Job(tmp_path, environment, {name.replace("_", "-"): text for name, text in given.items()})

    return make


def _run(service, job: Job) -> dict[str, Any]:
    return json.loads(service.foredeck("show", job.output("run-id"), "--json").stdout)


def test_a_green_build(service, job) -> None:
    green = job(gates="acceptance_length >= 2.8\n# and\nreward >= 0.5\n", junit="junit.xml", labels="gpu=none")
    assert green.run() == 0, green.printed
    assert green.output("verdict") == "passed"
    assert green.output("run-url") == f"{service.url}/runs/{green.output('run-id')}"
    labels = _run(service, green)["labels"]
    key = labels.pop("github/launch")
    assert key == green.outputs["launch"]["key"]
    origin = {"repository": "our/policy", "branch": "main", "commit": "c0ffee", "workflow_run": "77"}
    assert labels == origin | {"gpu": "none"}
    assert "acceptance_length >= 2.8" in green.summary
    assert len(ElementTree.parse(green.folder / "junit.xml").getroot().findall(".//testcase")) == 3
    assert green.annotations == []


def test_a_planted_regression_is_a_red_build_that_says_why(job) -> None:
    before = job(labels="branch=trunk")
    assert before.run() == 0, before.printed
    red = job(
        gates="acceptance_length >= 0.9 * baseline", baseline="label:branch=trunk", overrides="drafter.kind=ngram"
    )
    assert red.run() == 6, red.printed
    assert red.output("verdict") == "gate_failed"
    (annotation,) = red.annotations
    assert annotation.startswith("::error title=acceptance_length >= 0.9 * baseline::")
    assert "acceptance_length >= 0.9 * baseline" in red.summary


def test_a_failed_run_is_a_red_build(job) -> None:
    red = job(labels="ends=failed")
    assert red.run() == 1
    assert red.output("verdict") == "failed"
    assert red.annotations == ["::error title=Run failed::The loss is not a number."]


def test_a_cancelled_job_stops_its_run(service, job) -> None:
    cancelled = job(labels="ends=never")
    assert cancelled.run(cancel_at="judge") == 130, cancelled.printed
    assert service.foredeck("wait", cancelled.output("run-id")).returncode == 3


def test_a_run_that_takes_too_long_is_stopped(service, job) -> None:
    slow = job(labels="ends=never", timeout="0.005")

    def has_begun() -> None:
        with service.client() as client:
            while client.runs.wait(slow.output("run-id"), 0.1).status != "running":
                pass

    assert slow.run(before_judge=has_begun) == 4, slow.printed
    assert slow.output("verdict") == "timeout"
    assert "has not ended within" in slow.summary
    assert service.foredeck("wait", slow.output("run-id")).returncode == 3


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"config": "none.yaml"}, "none.yaml cannot be read"),
        ({"example": "smoke"}, "Give either `config`"),
        ({"token": ""}, "The token is empty"),
        ({"overrides": "grpo.num_steps=0"}, "grpo/num_steps"),
        ({"gates": "reward >= much"}, "/gates/0/assertion"),
    ],
)
def test_what_is_wrong_with_the_inputs_is_annotated(job, inputs: dict[str, str], said: str) -> None:
    wrong = job(**inputs)
    assert wrong.run() == 2, wrong.printed
    assert wrong.output("verdict") == "refused"
    assert said in wrong.annotations[0]
    assert said in wrong.summary


def test_texts_of_users_reach_neither_the_shell_nor_the_runner(service, job) -> None:
    evil = "$(touch pwned) `touch pwned` '; touch pwned; \" ${{ secrets.X }} %0A::set-env name=A::b"
    odd = job(name=evil, labels=f"note={evil}", gates="reward >= 0.5")
    assert odd.run() == 0, odd.printed
    run = _run(service, odd)
    assert (run["name"], run["labels"]["note"]) == (evil, evil)
    assert not list(odd.folder.glob("**/pwned"))
    obeyed = re.sub(r"^::stop-commands::(\w+)$.*?^::\1::$", "", odd.printed, flags=re.DOTALL | re.MULTILINE)
    assert "::" not in obeyed


def test_a_pull_request_of_a_fork_is_not_taken_for_the_repositorys_branch(service, job) -> None:
    head = {"label": "stranger:main", "sha": "badc0de", "repo": {"full_name": "stranger/policy"}}
    foreign = job(event={"pull_request": {"number": 12, "head": head}})
    assert foreign.run() == 0, foreign.printed
    labels = _run(service, foreign)["labels"]
    assert (labels["branch"], labels["commit"], labels["pull_request"]) == ("stranger:main", "badc0de", "12")


def test_no_script_holds_an_expression() -> None:
    assert len(STEPS) == 4
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        for value in step.get("env", {}).values():
            assert EXPRESSION.sub("", value) in {"", value}


def test_every_input_reaches_a_step_and_is_documented() -> None:
    used = {name for step in REST for text in step["env"].values() for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert used == set(ACTION["inputs"])
    page = (REPOSITORY / "docs" / "ci.md").read_text()
    assert [name for name in ACTION["inputs"] if f"`{name}`" not in page] == []
    assert [name for name in ACTION["outputs"] if f"`{name}`" not in page] == []
