from collections.abc import Callable
from typing import Any

import httpx
import pytest

from cli.errors import ExitCode
from cli.outcome import exit_code, time_is_up
from foredeck import Foredeck
from foredeck.models import Run

ServiceOf = Callable[[Callable[[httpx.Request], httpx.Response]], Foredeck]
CRASHED = [{"number": 1, "outcome": "failed"}, {"number": 2, "outcome": "crashed"}]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": "succeeded"}, 0),
        ({"status": "succeeded", "gates_verdict": "passed"}, 0),
        ({"status": "failed"}, 1),
        ({"status": "failed", "attempts": CRASHED[:1], "gates_verdict": "failed"}, 1),
        ({"status": "stopped", "gates_verdict": "failed"}, 3),
        ({"status": "failed", "attempts": CRASHED}, 5),
        ({"status": "succeeded", "gates_verdict": "failed"}, 6),
    ],
)
def test_each_end_has_a_code_of_its_own(run_body: dict[str, Any], changes: dict[str, Any], code: int) -> None:
    assert exit_code(Run.model_validate(run_body | {"is_ended": True} | changes)) == code


@pytest.mark.parametrize(
    ("status", "reachability", "code"),
    [
        ("running", "unreachable", ExitCode.TIMEOUT),
        ("dispatching", "reachable", ExitCode.TIMEOUT),
        ("dispatching", "unreachable", ExitCode.INFRASTRUCTURE),
        ("lost", "reachable", ExitCode.INFRASTRUCTURE),
    ],
)
def test_time_that_is_up_for_want_of_a_cluster_is_infrastructure(
    client_of: ServiceOf, run_body: dict[str, Any], status: str, reachability: str, code: ExitCode
) -> None:
    cluster = {"name": "local", "reachability": {"state": reachability, "detail": "No route to host."}}
    service = client_of(lambda _: httpx.Response(200, json=[cluster]))
    error = time_is_up(service, Run.model_validate(run_body | {"status": status}), 60)
    assert error.code == code
    assert "has not ended within 60 s. It goes on" in str(error)
