import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from cli.client import Client, Unreachable, server_sent_events
from cli.errors import CommandError, ExitCode

ClientOf = Callable[[Callable[[httpx.Request], httpx.Response]], Client]


def test_requests_carry_the_token_and_the_prefix(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(202, json=run_body)

    run = client_of(answer).launch({"name": "x"})
    assert run.id == UUID(run_body["id"])
    assert str(seen[0].url) == "http://service/api/v1/runs"
    assert seen[0].headers["Authorization"] == "Bearer fdk_x"
    assert json.loads(seen[0].content) == {"name": "x"}


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, ExitCode.USAGE), (404, ExitCode.USAGE), (422, ExitCode.USAGE), (429, 5), (500, 5), (503, 5)],
)
def test_a_problem_is_an_error_with_its_detail(client_of: ClientOf, status: int, code: int) -> None:
    problem = {"detail": "There is no run x.", "errors": []}
    client = client_of(lambda _: httpx.Response(status, json=problem))
    with pytest.raises(CommandError, match="There is no run x") as caught:
        client.page(limit=1)
    assert caught.value.code == code
    assert caught.value.problem == problem


def test_an_answer_of_something_else_is_said_so(client_of: ClientOf) -> None:
    client = client_of(lambda _: httpx.Response(404, text="<html>"))
    with pytest.raises(CommandError, match="not a Foredeck service"):
        client.page()


def test_a_dead_service_is_infrastructure(client_of: ClientOf) -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(Unreachable, match=r"http://service does not answer \(refused\)") as caught:
        client_of(refuse).page()
    assert caught.value.code == ExitCode.INFRASTRUCTURE


def _listing(run_body: dict[str, Any], names: list[str]) -> Callable[[httpx.Request], httpx.Response]:
    """Runs 0, 1, ... with these names, one a page, and a search over names as the service does it."""

    def answer(request: httpx.Request) -> httpx.Response:
        search = request.url.params.get("search", "")
        items = [
            run_body | {"id": f"{index}aaaaaaa-0000-4000-8000-000000000000", "name": name}
            for index, name in enumerate(names)
            if search in name
        ]
        at = int(request.url.params.get("cursor", 0))
        following = str(at + 1) if at + 1 < len(items) else None
        return httpx.Response(200, json={"items": items[at : at + 1], "next_cursor": following})

    return answer


def test_a_run_is_found_by_name_id_or_start_of_id_across_pages(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    client = client_of(_listing(run_body, ["a", "b", "b two"]))
    assert str(client.find("b"))[0] == "1"
    assert str(client.find("2aaa"))[0] == "2"
    whole = UUID("9aaaaaaa-0000-4000-8000-000000000000")
    assert client.find(str(whole)) == whole


def test_an_ambiguous_name_lists_the_candidates(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    client = client_of(_listing(run_body, ["a", "a"]))
    with pytest.raises(CommandError, match=r"not the name of one run, but of 2(?s:.)*0aaaaaaa(?s:.)*1aaaaaaa"):
        client.find("a")


def test_an_unknown_run_is_named(client_of: ClientOf, run_body: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match=r"There is no run 'nope'.*foredeck runs"):
        client_of(_listing(run_body, ["a"])).find("nope")


LINE = {"id": 5, "attempt": 1, "emitter": "driver/0", "time": "2026-01-01T00:00:00Z", "level": "info", "message": "hi"}


def test_following_a_log_goes_on_after_a_line_and_ends_with_the_run(client_of: ClientOf) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        text = (
            f"retry: 1000\n\n: keep-alive\n\nid: 5\nevent: log\ndata: {json.dumps(LINE)}\n\nevent: end\ndata: {{}}\n\n"
        )
        return httpx.Response(200, text=text)

    lines = list(client_of(answer).follow_log(UUID(int=1), 4))
    assert [line.message for line in lines] == ["hi"]
    assert seen[0].headers["Last-Event-ID"] == "4"


def test_a_log_that_breaks_off_is_not_taken_for_its_end(client_of: ClientOf) -> None:
    client = client_of(lambda _: httpx.Response(200, text=f"id: 5\nevent: log\ndata: {json.dumps(LINE)}\n\n"))
    stream = client.follow_log(UUID(int=1), 0)
    assert next(stream).id == 5
    with pytest.raises(Unreachable):
        next(stream)


def test_events_of_several_data_lines_are_joined() -> None:
    assert list(server_sent_events(iter(["event: a", "data: 1", "data:2", "", ": x", "", "data: 3", ""]))) == [
        ("a", "1\n2"),
        ("message", "3"),
    ]


def test_credentials_come_from_variables_or_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    monkeypatch.delenv("FOREDECK_URL", raising=False)
    monkeypatch.delenv("FOREDECK_TOKEN", raising=False)
    with pytest.raises(CommandError, match=r"foredeck up.*FOREDECK_URL and FOREDECK_TOKEN"):
        Client.from_environment()
    (tmp_path / "credentials.json").write_text(json.dumps({"url": "http://kept:1", "token": "fdk_kept"}))
    assert Client.from_environment().url == "http://kept:1"
    monkeypatch.setenv("FOREDECK_URL", "http://given:2/")
    monkeypatch.setenv("FOREDECK_TOKEN", "fdk_given")
    assert Client.from_environment().url == "http://given:2"
