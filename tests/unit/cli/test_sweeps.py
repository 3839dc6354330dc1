import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import sweep_list, sweeps
from cli.main import run
from foredeck import Foredeck

SWEEP_ID = "2b1c7c0e-5a64-4a53-8f0e-b7d4c6a1e9f2"
RUN_ID = "11111111-2222-4333-8444-555555555555"
K = "drafter.draft_length"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, run_body: dict[str, Any]) -> dict[str, Any]:
    """The requests that it got, as method, path and body."""
    state: dict[str, Any] = {"requests": [], "queries": []}
    points = [({K: 1}, None), ({K: 3}, 2.5)]
    runs = [run_body | {"sweep_point": point, "acceptance_length": length} for point, length in points]
    sweep = {
        "id": SWEEP_ID, "name": "lengths", "labels": {}, "project": "default", "cluster": "local", "keys": [K],
        "num_runs": 2, "runs": runs, "num_runs_by_status": {"running": 2}, "is_ended": False,
        "created_at": "2026-01-01T00:00:00Z",
        "best": {"run_id": RUN_ID, "name": "x", "point": {K: 3}, "metric": "acceptance_length", "value": 2.5},
    }  # fmt: skip

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        if request.url.params:
            state["queries"].append(dict(request.url.params))
        state["requests"].append((request.method, path, json.loads(request.content or b"null")))
        is_list = (request.method, path) == ("GET", "/sweeps")
        return httpx.Response(200, json={"items": [sweep], "next_cursor": None} if is_list else sweep)

    def make(**_: float) -> Foredeck:
        return Foredeck("http://service/", "fdk_x", patience_s=0, transport=httpx.MockTransport(answer))

    monkeypatch.setattr(Foredeck, "from_environment", make)
    return state


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    for module in (sweeps, sweep_list):
        monkeypatch.setattr(module, "console", Console(file=written, width=160))
    return written


def test_a_sweep_of_an_example(service: dict[str, Any], output: io.StringIO) -> None:
    options = ["--set", "grpo.num_steps=4", "--axis", f"{K}=[1, 3]", "--axis", "seed=[1]", "--label", "branch=main"]
    own = ["--example", "smoke", "--priority", "5", "--max-concurrent", "2", "--project", "vision"]
    assert run(["sweep", "create", "lengths", *own, *options]) == 0
    assert service["requests"] == [
        (
            "POST",
            "/sweeps",
            {
                "name": "lengths", "axes": {K: [1, 3], "seed": [1]}, "labels": {"branch": "main"}, "project": "vision",
                "cluster": "local", "priority": 5, "max_concurrent": 2, "example": "smoke",
                "overrides": {"grpo": {"num_steps": 4}},
            },
        )
    ]  # fmt: skip
    assert "lengths: 2 running\nhttp://service/sweeps/2b1c7c0e" in output.getvalue()
    assert [line.split() for line in output.getvalue().splitlines()[-2:]] == [
        ["11111111", "1", "running", "-", "-", "-"],
        ["11111111", "3", "running", "2.5", "-", "-"],
    ]


def test_a_sweep_of_a_file_and_of_listed_points(service: dict[str, Any], output: io.StringIO, tmp_path: Path) -> None:
    base, points = tmp_path / "base.yaml", tmp_path / "points.yaml"
    base.write_text("config: {seed: 3}")
    points.write_text(f"- {{{K}: 1}}\n- {{drafter: {{kind: none}}}}")
    arguments = ["--file", str(base), "--set", "seed=4", "--points", str(points)]
    assert run(["sweep", "create", "x", *arguments]) == 0
    body = service["requests"][0][2]
    assert (body["config"], body["points"]) == ({"seed": 4}, [{K: 1}, {"drafter": {"kind": "none"}}])


def test_sweeps_are_listed_with_the_best_run_of_each(service: dict[str, Any], output: io.StringIO) -> None:
    assert run(["sweep", "list", "--project", "vision", "--best-by", "acceptance_length"]) == 0
    assert service["queries"] == [{"limit": "200", "project": "vision", "best_by": "acceptance_length"}]
    title, line = output.getvalue().splitlines()
    assert "Best acceptance length" in title
    assert line.split() == ["2b1c7c0e", "lengths", "2", "running", "2.5", f"{K}=3"]


def test_a_sweeps_name_labels_and_notes_are_changed(service: dict[str, Any], output: io.StringIO) -> None:
    assert run(["sweep", "update", SWEEP_ID, "--notes", "why", "--label", "team=rl"]) == 0
    assert service["requests"] == [("PATCH", f"/sweeps/{SWEEP_ID}", {"labels": {"team": "rl"}, "notes": "why"})]
    assert run(["sweep", "update", SWEEP_ID]) == 2
    assert len(service["requests"]) == 1


def test_a_sweep_from_a_run(service: dict[str, Any], output: io.StringIO) -> None:
    assert run(["sweep", "create", "x", "--run", RUN_ID, "--axis", "seed=[1]"]) == 0
    assert service["requests"][0][2]["base_run_id"] == RUN_ID


@pytest.mark.parametrize("name", [SWEEP_ID, SWEEP_ID[:8], "lengths"])
def test_a_sweep_is_found_by_its_id_the_start_of_it_or_its_name(
    service: dict[str, Any], output: io.StringIO, name: str
) -> None:
    assert run(["sweep", "show", name]) == 0
    assert service["requests"][-1][:2] == ("GET", f"/sweeps/{SWEEP_ID}")
    assert run(["sweep", "stop", name, "--json"]) == 0
    assert service["requests"][-1][:2] == ("POST", f"/sweeps/{SWEEP_ID}/stop")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "x", "--axis", "seed=[1]"], "by one of --file, --example and --run"),
        (["create", "x", "--example", "a", "--run", RUN_ID, "--axis", "seed=[1]"], "by one of"),
        (["create", "x", "--example", "a", "--axis", "seed=1"], "write key.path=[values]"),
        (["create", "x", "--example", "a", "--axis", "seed=[1"], "is not YAML"),
        (["create", "x", "--example", "a", "--points", "/nowhere.yaml"], "cannot be read"),
        (["show", "nothing"], "There is no sweep 'nothing'"),
    ],
)
def test_what_cannot_be_meant(
    service: dict[str, Any], capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(["sweep", *arguments, "--json"]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]
