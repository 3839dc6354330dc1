import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import progress
from cli.errors import CommandError, ExitCode
from foredeck import Foredeck, ForedeckError
from foredeck.models import Run

ClientOf = Callable[[Callable[[httpx.Request], httpx.Response]], Foredeck]


def _console() -> Console:
    return Console(file=io.StringIO(), width=160)


def _written(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_running_run_is_described_by_stage_and_figures(run_body: dict[str, Any]) -> None:
    assert progress.describe(Run.model_validate(run_body)) == "generation, reward 0.5, acceptance 3.25"
    warming = run_body | {"stage": "warm_up", "stage_progress_fraction": 0.42, "latest": {}}
    assert progress.describe(Run.model_validate(warming)) == "warm up 42 %"


def test_a_waiting_run_is_described_by_its_reason(run_body: dict[str, Any]) -> None:
    waiting = run_body | {"status": "dispatching", "status_reason": "Starting Ray on this machine.", "stage": None}
    assert progress.describe(Run.model_validate(waiting)) == "Starting Ray on this machine."


def test_following_prints_each_change_once_and_outlives_a_restart_of_the_service(
    client_of: ClientOf, run_body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.0)
    monkeypatch.setattr(progress, "UNSEEN_POLL_S", 0.0)
    ended = run_body | {"step": 40, "status": "succeeded", "is_ended": True}
    answers = iter(
        [
            httpx.Response(200, json=run_body),
            httpx.Response(503, json={"detail": "PostgreSQL does not answer."}),
            httpx.Response(200, json=run_body | {"step": 8}),
            httpx.Response(200, json=ended),
        ]
    )
    console = _console()
    last = progress.Follower(client_of(lambda _: next(answers)), console).until_ended(Run.model_validate(run_body))
    assert last.status == "succeeded"
    lines = _written(console).splitlines()
    assert [line.split("]")[0] for line in lines] == ["[7/40", "[8/40", "[40/40"]


def test_time_is_up_while_the_run_goes_on(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    client = client_of(lambda _: httpx.Response(200, json=run_body))
    with pytest.raises(CommandError, match="It goes on") as caught:
        progress.Follower(client, _console(), timeout_s=0.0).until_ended(Run.model_validate(run_body))
    assert caught.value.code == ExitCode.TIMEOUT


def test_a_refusal_is_not_waited_out(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    client = client_of(lambda _: httpx.Response(401, json={"detail": "The token is revoked."}))
    with pytest.raises(ForedeckError, match="revoked"):
        progress.Follower(client, _console()).until_ended(Run.model_validate(run_body))


@pytest.mark.parametrize(("status", "code"), [("succeeded", 0), ("failed", 1), ("stopped", 3)])
def test_the_exit_code_tells_how_it_ended(run_body: dict[str, Any], status: str, code: int) -> None:
    console = _console()
    assert progress.finish(console, Run.model_validate(run_body | {"status": status, "is_ended": True})) == code
    assert "Acceptance length" in _written(console)
