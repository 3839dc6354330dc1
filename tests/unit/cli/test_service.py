from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from cli.errors import CommandError
from cli.service import connect, find
from foredeck import Foredeck

ServiceOf = Callable[[Callable[[httpx.Request], httpx.Response]], Foredeck]


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


def test_a_run_is_found_by_name_id_or_start_of_id_across_pages(client_of: ServiceOf, run_body: dict[str, Any]) -> None:
    service = client_of(_listing(run_body, ["a", "b", "b two"]))
    assert str(find(service, "b"))[0] == "1"
    assert str(find(service, "2aaa"))[0] == "2"
    whole = UUID("9aaaaaaa-0000-4000-8000-000000000000")
    assert find(service, str(whole)) == whole


def test_an_ambiguous_name_lists_the_candidates(client_of: ServiceOf, run_body: dict[str, Any]) -> None:
    service = client_of(_listing(run_body, ["a", "a"]))
    with pytest.raises(CommandError, match=r"not the name of one run, but of 2(?s:.)*0aaaaaaa(?s:.)*1aaaaaaa"):
        find(service, "a")


def test_an_unknown_run_is_named(client_of: ServiceOf, run_body: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match=r"There is no run 'nope'.*foredeck runs"):
        find(client_of(_listing(run_body, ["a"])), "nope")


def test_a_patience_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREDECK_PATIENCE_S", "long")
    with pytest.raises(CommandError, match="FOREDECK_PATIENCE_S is 'long'"):
        connect()
