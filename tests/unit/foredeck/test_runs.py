import json
from uuid import UUID

import pytest

RUN_ID = UUID("11111111-2222-4333-8444-555555555555")


def test_all_pages_of_a_list_are_fetched(server, service, run_body) -> None:
    server.answers = [
        (200, {}, json.dumps({"items": [run_body(name="a")], "next_cursor": "c"})),
        (200, {}, json.dumps({"items": [run_body(name="b")], "next_cursor": None})),
    ]
    assert [run.name for run in service.runs.list(status="running", labels={"branch": "main"})] == ["a", "b"]
    assert [asked.path for asked in server.asked] == [
        "/api/v1/runs?limit=200&status=running&label=branch%3Amain",
        "/api/v1/runs?limit=200&cursor=c&status=running&label=branch%3Amain",
    ]


def test_a_change_names_the_version_that_it_is_a_change_of(server, service, run_body) -> None:
    server.answers = [(200, {"ETag": '"7"'}, json.dumps(run_body()))]
    run = service.runs.get(RUN_ID)
    assert run.etag == '"7"'
    service.runs.update(run.id, notes="", if_match=run.etag)
    assert server.asked[1].headers["If-Match"] == '"7"'
    assert json.loads(server.asked[1].body) == {"notes": ""}


@pytest.mark.parametrize("timeout_s", [0.0, 0.05])
def test_waiting_ends_with_the_time(server, service, run_body, timeout_s: float) -> None:
    server.answers = [(200, {}, json.dumps(run_body()))]
    assert not service.runs.wait(RUN_ID, timeout_s).is_ended
    assert server.asked[0].path.startswith(f"/api/v1/runs/{RUN_ID}/wait?timeout_s=0")


def test_waiting_ends_with_the_run(server, service, run_body) -> None:
    server.answers = [(200, {}, json.dumps(run_body())), (200, {}, json.dumps(run_body(is_ended=True)))]
    assert service.runs.wait(RUN_ID, 1000).is_ended
    assert [asked.path for asked in server.asked] == [f"/api/v1/runs/{RUN_ID}/wait?timeout_s=300.0"] * 2
