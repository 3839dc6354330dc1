"""What docs/operations/command_line.md promises, against the real service."""

import html
import json
import signal
from typing import Any
from xml.etree import ElementTree

import pytest


@pytest.mark.parametrize(("ends", "code"), [("succeeded", 0), ("failed", 1)])
def test_the_runs_end_is_the_commands(service, file, ends: str, code: int) -> None:
    done = service.foredeck("launch", file, "--label", f"ends={ends}", "--wait", "--json")
    assert done.returncode == code, done.stderr
    run = json.loads(done.stdout)
    assert (run["status"], run["labels"]) == (ends, {"ends": ends})
    assert service.foredeck("wait", run["id"]).returncode == code


def _launched(service, file, ends: str, *more: str) -> dict[str, Any]:
    done = service.foredeck("launch", file, "--label", f"ends={ends}", "--json", *more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_refusal_is_2_and_changes_nothing(service, file) -> None:
    done = service.foredeck("launch", file, "--set", "grpo.num_steps=0", "--name", "refused", "--wait", "--json")
    assert done.returncode == 2
    problem = json.loads(done.stdout)["problem"]
    assert problem["errors"][0]["pointer"] == "/config/grpo/num_steps"
    assert json.loads(service.foredeck("runs", "--search", "refused", "--json").stdout) == []


def test_a_stopped_run_is_3(service, file) -> None:
    run = _launched(service, file, "never")
    waiting = service.start("wait", run["id"])
    assert service.foredeck("stop", run["id"], "--wait").returncode == 0
    waiting.communicate(timeout=60)
    assert waiting.returncode == 3


def test_time_that_is_up_is_4_and_the_run_goes_on(service, file) -> None:
    run = _launched(service, file, "never")
    with service.client() as client:
        while client.runs.wait(run["id"], 0.1).status != "running":
            pass
    done = service.foredeck("wait", run["id"], "--timeout", "0.2")
    assert done.returncode == 4
    assert "It goes on" in done.stderr
    assert json.loads(service.foredeck("show", run["id"], "--json").stdout)["status"] == "running"


def test_a_cluster_that_does_not_answer_is_5(service, file) -> None:
    run = _launched(service, file, "silent")
    with service.client() as client:
        while client.runs.wait(run["id"], 0.1).status != "dispatching":
            pass
    done = service.foredeck("wait", run["id"], "--timeout", "0.2")
    assert done.returncode == 5
    assert "Its cluster local does not answer" in done.stderr


def test_a_service_that_does_not_answer_is_5(service, file) -> None:
    done = service.foredeck("launch", file, "--wait", FOREDECK_URL="http://127.0.0.1:1", FOREDECK_PATIENCE_S="0.1")
    assert done.returncode == 5
    assert "http://127.0.0.1:1 does not answer" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_stops_its_run_where_that_is_wanted(service, file, number: int) -> None:
    run = _launched(service, file, "never")
    waiting = service.start("wait", run["id"], "--stop-on-interrupt")
    assert waiting.stdout is not None
    waiting.stdout.readline()
    waiting.send_signal(number)
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert "is asked to stop" in said
    assert service.foredeck("wait", run["id"]).returncode == 3


@pytest.mark.parametrize(("limit", "code"), [("2.8", 0), ("3.2", 6)])
def test_a_failed_gate_is_6_and_leaves_reports(service, file, tmp_path, limit: str, code: int) -> None:
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    reports = ("--junit", str(junit), "--summary", str(summary))
    done = service.foredeck("launch", file, "--gate", f"acceptance_length >= {limit}", "--wait", *reports)
    assert done.returncode == code, done.stderr
    assert f"{int(code == 0)} of 1 gates passed" in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert len(suite.findall(".//testcase")) == 2
    assert len(suite.findall(".//failure")) == int(code == 6)
    assert f"acceptance_length >= {limit}" in html.unescape(summary.read_text())


def test_gates_of_a_file_are_judged_later_against_a_baseline(service, file, tmp_path) -> None:
    green = _launched(service, file, "succeeded", "--label", "branch=main")
    worse = _launched(service, file, "succeeded", "--set", "drafter.kind=ngram")
    assert service.foredeck("wait", green["id"]).returncode == 0
    assert service.foredeck("wait", worse["id"]).returncode == 0
    gates = tmp_path / "gates.yaml"
    gates.write_text(
        "gates:\n- reward >= baseline - 0.05\n- {name: accepts, assertion: acceptance_length >= 0.9 * baseline}\n"
    )
    asked = ("--gates", str(gates), "--baseline", "label:branch=main", "--json")
    done = service.foredeck("gate", worse["id"], *asked)
    assert done.returncode == 6, done.stdout + done.stderr
    results = {result["name"]: result["is_passed"] for result in json.loads(done.stdout)["results"]}
    assert results == {"reward >= baseline - 0.05": True, "accepts": False}
    assert service.foredeck("gate", green["id"], "--gate", "reward > 0.5").returncode == 0


def test_a_log_is_followed_to_the_verdict(service, file) -> None:
    done = service.foredeck("launch", file, "--gate", "acceptance_length >= 3.2", "--follow")
    assert done.returncode == 6, done.stderr
    assert "Queued by" in done.stdout
    assert "0 of 1 gates passed" in done.stdout
    refused = service.foredeck("launch", file, "--follow", "--timeout", "60")
    assert refused.returncode == 2
