import io
import json
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import drafts
from cli.main import run
from foredeck import Foredeck
from foredeck.models import Run

AREA = "draft_pretraining/held_out"
LATEST = {
    "draft_pretraining/loss_nats": 0.2,
    f"{AREA}_acceptance_length_tokens": 2.5,
    f"{AREA}_acceptance_position_1_fraction": 0.9,
    f"{AREA}_acceptance_position_2_fraction": 0.6,
    f"{AREA}_expected_acceptance_length_tokens": 1.875,
    f"{AREA}_expected_acceptance_position_1_fraction": 0.875,
}


@pytest.fixture
def ended(run_body: dict[str, Any]) -> dict[str, Any]:
    return run_body | {
        "status": "succeeded",
        "is_ended": True,
        "num_steps": 0,
        "job": "draft_training",
        "latest": LATEST,
        "last_checkpoint_path": "/runs/7/draft",
    }


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, run_body: dict[str, Any], ended: dict[str, Any]) -> list[dict[str, Any]]:
    """Bodies of the launches that a service got which ends runs at once."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            bodies.append(json.loads(request.content))
            return httpx.Response(201, json=run_body)
        return httpx.Response(200, json=ended)

    client = Foredeck("http://service/", "fdk_x", patience_s=0, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(Foredeck, "from_environment", lambda **_: client)
    return bodies


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("drafter: {kind: mtp}\ngrpo: {num_steps: 20}\n")
    return str(path)


def test_the_configuration_of_a_run_becomes_that_of_a_draft_training(sent, file) -> None:
    assert run(["draft", "train", file, "--set", "drafter.draft_length=4", "--name", "d"]) == 0
    (body,) = sent
    assert body["name"] == "d"
    assert body["config"] == {
        "job": "draft_training",
        "drafter": {"kind": "mtp", "draft_length": 4},
        "grpo": {"num_steps": 20},
    }


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What people read."""
    output = io.StringIO()
    monkeypatch.setattr(drafts, "console", Console(file=output, width=160))
    return output


def test_the_table_shows_each_position_and_the_folder_to_use(sent, file, printed: io.StringIO) -> None:
    assert run(["draft", "train", file, "--wait"]) == 0
    lines = [line.split() for line in printed.getvalue().splitlines()]
    assert ["1", "0.9", "0.875"] in lines
    assert ["2", "0.6", "-"] in lines
    assert ["Length", "2.5", "1.88"] in lines
    assert ["drafter.path:", "/runs/7/draft"] in lines


def test_json_has_the_same(sent, file, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["draft", "train", file, "--wait", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["path"] == "/runs/7/draft"
    assert printed["acceptance_length_tokens"] == 2.5
    assert printed["positions"] == [
        {"position": 1, "accepted_fraction": 0.9, "expected_fraction": 0.875},
        {"position": 2, "accepted_fraction": 0.6, "expected_fraction": None},
    ]


def test_a_draft_that_failed_has_no_table(sent, file, ended, printed: io.StringIO) -> None:
    ended |= {"status": "failed", "status_reason": "no room", "latest": {}, "last_checkpoint_path": None}
    assert run(["draft", "train", file, "--wait"]) == 1
    assert "drafter.path" not in printed.getvalue()
    assert drafts.report(Run.model_validate(ended))["positions"] == []
