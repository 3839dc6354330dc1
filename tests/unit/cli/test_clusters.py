import io
import json
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import clusters
from cli.main import run
from foredeck import Foredeck

CLUSTER = {
    "name": "h200",
    "address": "http://head:8265",
    "code": {"kind": "installed"},
    "num_live_runs": 1,
    "num_queued_runs": 5,
    "max_concurrent_runs": 2,
    "reachability": {"state": "reachable", "detail": "Ray 2.60.0 answers."},
    "resources": {"GPU": {"used": 3.0, "total": 8.0}},
}
PASSED = {
    "id": "check-1",
    "state": "passed",
    "findings": [{"name": "ray", "is_ok": True, "detail": "2.60.0"}],
    "log": [],
}
BAD = {"name": "storage_dir", "is_ok": False, "detail": "/mnt: is not shared with 10.0.0.2: mount one folder"}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What it answers to the polls of a check, in order, and the requests that it got."""
    state: dict[str, Any] = {"checks": [PASSED], "requests": []}

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        state["requests"].append((request.method, path, json.loads(request.content or b"null")))
        if path.endswith("/checks"):
            return httpx.Response(202, json={"id": "check-1"})
        if "/checks/" in path:
            checks = state["checks"]
            return httpx.Response(200, json=checks.pop(0) if len(checks) > 1 else checks[0])
        return httpx.Response(201 if request.method == "POST" else 200, json=CLUSTER if request.content else [CLUSTER])

    def make(**_: float) -> Foredeck:
        return Foredeck("http://service/", "fdk_x", patience_s=0, transport=httpx.MockTransport(answer))

    monkeypatch.setattr(Foredeck, "from_environment", make)
    monkeypatch.setattr(clusters, "POLL_S", 0.0)
    return state


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is printed."""
    written = io.StringIO()
    monkeypatch.setattr(clusters, "console", Console(file=written, width=160))
    return written


def test_clusters_are_listed(service: dict[str, Any], output: io.StringIO) -> None:
    assert run(["cluster", "list"]) == 0
    line = output.getvalue().splitlines()[1]
    assert line.split() == [
        "h200",
        "reachable",
        "1",
        "of",
        "2",
        "5",
        "3",
        "of",
        "8",
        "used",
        "installed",
        "http://head:8265",
    ]


def test_a_registration_is_read_from_a_file(service: dict[str, Any], tmp_path, output: io.StringIO) -> None:
    file = tmp_path / "h200.yaml"
    file.write_text("name: h200\naddress: http://head:8265\ncode: {kind: container, image: 'ours:1'}\n")
    assert run(["cluster", "add", str(file)]) == 0
    assert "Registered h200. Ray 2.60.0 answers." in output.getvalue()
    body = {"name": "h200", "address": "http://head:8265", "code": {"kind": "container", "image": "ours:1"}}
    assert service["requests"] == [("POST", "/clusters", body)]
    file.write_text("- name")
    assert run(["cluster", "add", str(file)]) == 2


def test_a_check_is_waited_for_and_its_findings_decide_the_exit_code(
    service: dict[str, Any], output: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    running = {"id": "check-1", "state": "running", "findings": [], "log": []}
    service["checks"] = [running, running, PASSED]
    assert run(["cluster", "check", "h200"]) == 0
    assert output.getvalue() == "ok  ray: 2.60.0\n"
    service["checks"] = [PASSED | {"state": "failed", "findings": [*PASSED["findings"], BAD]}]
    assert run(["cluster", "check", "h200"]) == 1
    assert "bad storage_dir: /mnt: is not shared with 10.0.0.2" in output.getvalue()
    assert run(["cluster", "check", "h200", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][1]["is_ok"] is False


def test_a_check_that_could_not_even_begin_shows_why(service: dict[str, Any], output: io.StringIO) -> None:
    service["checks"] = [
        {"id": "check-1", "state": "failed", "findings": [], "log": ["No matching distribution for x"]}
    ]
    assert run(["cluster", "check", "h200"]) == 1
    assert "No matching distribution for x" in output.getvalue()
