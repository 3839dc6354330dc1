import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from foredeck import Foredeck, ForedeckError
from foredeck.transport import refusal

PROBLEM = {"title": "x", "status": 422, "detail": "There is no run x.", "request_id": "r1", "errors": [{"detail": "d"}]}


def _problem(status: int, **headers: str) -> tuple[int, dict[str, str], str]:
    return status, headers, json.dumps(PROBLEM | {"status": status})


def _ok(body: object) -> tuple[int, dict[str, str], str]:
    return 200, {}, json.dumps(body)


@pytest.mark.parametrize(
    ("status", "is_infrastructure"), [(401, False), (404, False), (422, False), (429, True), (500, True), (503, True)]
)
def test_a_problem_is_an_error_that_carries_it(server, status: int, is_infrastructure: bool) -> None:
    server.answers = [_problem(status)]
    with (
        Foredeck(server.url, "fdk_x", patience_s=0) as service,
        pytest.raises(ForedeckError, match="There is no run x") as caught,
    ):
        service.runs.page(limit=1)
    error = caught.value
    assert (error.status, error.is_infrastructure) == (status, is_infrastructure)
    assert error.problem is not None
    assert error.problem.request_id == "r1"
    assert error.problem.errors[0].detail == "d"


def test_an_answer_of_something_else_is_said_so(server, service) -> None:
    server.answers = [(404, {}, "<html>")]
    with pytest.raises(ForedeckError, match="not a Foredeck service"):
        service.runs.page()
    server.answers = [(200, {}, "<html>")]
    with pytest.raises(ForedeckError, match="does not understand"):
        service.runs.page()


def test_a_dead_service_is_named_and_unreachable() -> None:
    with (
        Foredeck("http://127.0.0.1:1", "fdk_x", patience_s=0) as service,
        pytest.raises(ForedeckError, match=r"http://127.0.0.1:1 does not answer") as caught,
    ):
        service.runs.page()
    assert caught.value.is_unreachable
    assert caught.value.is_infrastructure


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ForedeckError, match=r"'foredeck\.example' is no address"):
        Foredeck("foredeck.example", "fdk_x")


@pytest.mark.parametrize("passing", [_problem(503), _problem(502), _problem(429), (0, {}, "")])
def test_reading_is_tried_again(server, service, passing) -> None:
    server.answers = [passing, passing, _ok({"items": [], "next_cursor": None})]
    assert service.runs.page().items == []
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_what_would_be_refused_again_is_not(server, service, status: int) -> None:
    server.answers = [_problem(status)]
    with pytest.raises(ForedeckError):
        service.runs.page()
    assert len(server.asked) == 1


@pytest.mark.parametrize("passing", [_problem(503), (0, {}, "")])
def test_a_launch_is_repeated_with_the_same_key(server, service, run_body, passing) -> None:
    server.answers = [passing, _ok(run_body())]
    service.runs.launch({"name": "x"})
    keys = {asked.headers["Idempotency-Key"] for asked in server.asked}
    assert len(server.asked) == 2
    assert len(keys) == 1
    server.asked.clear()
    service.runs.launch({"name": "x"})
    assert {asked.headers["Idempotency-Key"] for asked in server.asked} != keys
    assert server.asked[0].headers["Authorization"] == "Bearer fdk_x"
    assert server.asked[0].path == "/api/v1/runs"
    assert json.loads(server.asked[0].body) == {"name": "x"}


def test_an_equal_launch_in_flight_is_waited_for(server, service, run_body) -> None:
    server.answers = [_problem(409, **{"Retry-After": "0"}), _ok(run_body())]
    assert service.runs.launch({"name": "x"}, idempotency_key="k").name == "eagle3 k=3"
    assert [asked.headers["Idempotency-Key"] for asked in server.asked] == ["k", "k"]


@pytest.mark.parametrize("passing", [_problem(503), (0, {}, "")])
def test_a_change_that_may_have_been_made_is_not_repeated(server, service, passing) -> None:
    server.answers = [passing, _ok({"name": "c"})]
    with pytest.raises(ForedeckError) as caught:
        service.clusters.add({"name": "c"})
    assert caught.value.is_infrastructure
    assert len(server.asked) == 1


def test_a_change_that_was_turned_away_is_repeated(server, service) -> None:
    server.answers = [_problem(429, **{"Retry-After": "0"}), _ok({"name": "c"})]
    assert service.clusters.add({"name": "c"}).name == "c"


def test_the_pause_is_the_one_that_the_service_asks_for(server, service) -> None:
    server.answers = [_problem(503, **{"Retry-After": "1"}), _ok({"items": []})]
    began = time.monotonic()
    service.runs.page()
    assert time.monotonic() - began >= 1


def test_a_pause_beyond_the_patience_is_not_begun(server, service) -> None:
    server.answers = [_problem(503, **{"Retry-After": "60"})]
    with pytest.raises(ForedeckError) as caught:
        service.runs.page()
    assert caught.value.retry_after_s == 60
    assert len(server.asked) == 1


def test_a_service_may_ask_for_a_pause_until_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    for value, low, high in ((later, 90, 100), ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0)):
        answer = httpx.Response(503, headers={"Retry-After": value}, request=httpx.Request("GET", "http://x"))
        found = refusal(answer).retry_after_s
        assert found is not None
        assert low <= found <= high
    odd = httpx.Response(503, headers={"Retry-After": "soon"}, request=httpx.Request("GET", "http://x"))
    assert refusal(odd).retry_after_s is None
