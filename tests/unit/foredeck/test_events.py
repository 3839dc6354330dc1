import json
from uuid import UUID

import pytest

from foredeck import Event, ForedeckError, events

RUN_ID = UUID("11111111-2222-4333-8444-555555555555")

LINE = {"id": 5, "attempt": 1, "emitter": "driver/0", "time": "2026-01-01T00:00:00Z", "level": "info", "message": "hi"}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE_S", 0.001)


def _log(number: int) -> str:
    return f"id: {number}\nevent: log\ndata: {json.dumps(LINE | {'id': number})}\n\n"


def test_events_have_a_kind_data_of_several_lines_and_an_id() -> None:
    lines = ["event: a", "id: 7", "data: 1", "data:2", "", ": keep-alive", "", "data: 3", "", "data: cut off"]
    assert list(events.parsed(iter(lines))) == [Event("a", "1\n2", 7), Event("message", "3", None)]


def test_following_a_log_goes_on_after_an_interruption_and_ends_with_the_run(server, service) -> None:
    server.answers = [
        (200, {}, "retry: 1000\n\n: keep-alive\n\n" + _log(5)),
        (503, {}, json.dumps({"detail": "PostgreSQL does not answer."})),
        (200, {}, _log(6) + "event: end\ndata: {}\n\n"),
    ]
    assert [line.id for line in service.runs.follow_log(RUN_ID, 4)] == [5, 6]
    assert [asked.headers["Last-Event-ID"] for asked in server.asked] == ["4", "5", "5"]
    assert server.asked[0].path == f"/api/v1/runs/{RUN_ID}/logs/stream"


def test_a_refusal_ends_the_following(server, service) -> None:
    server.answers = [(200, {}, _log(5)), (401, {}, json.dumps({"detail": "Log in."}))]
    with pytest.raises(ForedeckError, match="Log in"):
        list(service.runs.follow_log(RUN_ID))


def test_silence_beyond_the_patience_ends_the_following(server, service) -> None:
    server.answers = [(503, {}, json.dumps({"detail": "PostgreSQL does not answer."}))]
    with pytest.raises(ForedeckError, match="PostgreSQL"):
        next(service.runs.follow(patience_s=0))


def test_what_advances_in_several_runs_is_one_stream(server, service) -> None:
    server.answers = [(200, {}, 'event: open\nid: 3\ndata: {}\n\nevent: run\nid: 4\ndata: {"status":"running"}\n\n')]
    found = list(events.until(service.runs.follow(RUN_ID), lambda event: event.kind == "run"))
    assert [(event.kind, event.id) for event in found] == [("open", 3), ("run", 4)]
    assert server.asked[0].path == f"/api/v1/stream?runs={RUN_ID}"
    assert "Last-Event-ID" not in server.asked[0].headers
