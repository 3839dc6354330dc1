import io
import json
from typing import Any

import httpx
import pytest
from rich.console import Console

from cli import access, projects, users
from cli.main import run
from foredeck import Foredeck

TIME = "2030-01-31T12:00:00Z"
ID = "11111111-2222-4333-8444-555555555555"
USER = {"name": "grace", "email": "grace@example.org", "is_admin": False, "is_active": True}
LINK = {"url": "https://x/login#code=c", "expires_at": TIME}
PROJECT = {"name": "research", "role": "admin", "num_runs": 3, "num_members": 2}
MEMBER = {"user": "grace", "role": "launcher", "is_active": True}
TOKEN = {
    "id": ID,
    "prefix": "0c1d2e3f",
    "name": "[red]ci\x1b[2J",
    "user": "grace",
    "scopes": ["read"],
    "project": None,
    "created_at": TIME,
}
ENTRY = {
    "id": 7,
    "time": TIME,
    "actor": "token:grace/ci",
    "action": "run.launch",
    "target": ID,
    "detail": {"name": "[b]x"},
    "project": "research",
    "address": "192.0.2.7",
}
ANSWERS: dict[tuple[str, str], Any] = {
    ("GET", "/users"): {"items": [USER], "next_cursor": None},
    ("POST", "/users"): USER,
    ("PATCH", "/users/grace"): {**USER, "is_active": False},
    ("POST", "/users/grace/login-links"): LINK,
    ("POST", "/login-links"): LINK,
    ("DELETE", "/users/grace/sessions"): None,
    ("GET", "/projects"): {"items": [PROJECT], "next_cursor": None},
    ("POST", "/projects"): PROJECT,
    ("PATCH", "/projects/research"): {**PROJECT, "name": "alignment"},
    ("DELETE", "/projects/research"): None,
    ("GET", "/projects/research/members"): [MEMBER],
    ("PUT", "/projects/research/members/grace"): MEMBER,
    ("DELETE", "/projects/research/members/grace"): None,
    ("GET", "/tokens"): {"items": [TOKEN], "next_cursor": None},
    ("POST", "/tokens"): {**TOKEN, "token": "fdk_0c1d2e3f_x"},
    ("DELETE", f"/tokens/{ID}"): None,
    ("GET", "/audit"): {"items": [ENTRY] * 3, "next_cursor": None},
}


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Any]]:
    """Those that the service got: (method, path, body or query)."""
    got: list[tuple[str, str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api/v1")
        got.append((request.method, path, json.loads(request.content or b"null") or dict(request.url.params)))
        return httpx.Response(200, json=ANSWERS[request.method, path])

    for module in (access, projects, users):
        monkeypatch.setattr(
            module, "connect", lambda: Foredeck("http://service/", "fdk_x", transport=httpx.MockTransport(answer))
        )
    return got


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is printed."""
    written = io.StringIO()
    for module in (access, projects, users):
        monkeypatch.setattr(module, "console", Console(file=written, width=160))
    return written


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (
            "user add grace --email g@x.org",
            ("POST", "/users", {"name": "grace", "email": "g@x.org", "is_admin": False}),
        ),
        ("user update grace --inactive", ("PATCH", "/users/grace", {"is_active": False})),
        (
            "user update grace --no-admin --subject 42",
            ("PATCH", "/users/grace", {"is_admin": False, "oidc_subject": "42"}),
        ),
        ("user log-out grace", ("DELETE", "/users/grace/sessions", {})),
        ("project create research", ("POST", "/projects", {"name": "research"})),
        ("project rename research alignment", ("PATCH", "/projects/research", {"name": "alignment"})),
        ("project delete research", ("DELETE", "/projects/research", {})),
        (
            "project grant research grace launcher",
            ("PUT", "/projects/research/members/grace", {"role": "launcher"}),
        ),
        ("project revoke research grace", ("DELETE", "/projects/research/members/grace", {})),
        (
            "token create ci --scope write --project research",
            ("POST", "/tokens", {"name": "ci", "scopes": ["write"], "project": "research", "expires_at": None}),
        ),
    ],
)
def test_a_command_is_one_request(
    requests: list[tuple[str, str, Any]], output: io.StringIO, command: str, asked: tuple[str, str, Any]
) -> None:
    assert run(command.split()) == 0
    assert requests[0] == asked


def test_a_new_user_is_let_in_by_a_link(requests: list[tuple[str, str, Any]], output: io.StringIO) -> None:
    assert run(["user", "add", "grace"]) == 0
    assert requests[1][:2] == ("POST", "/users/grace/login-links")
    assert output.getvalue() == f"{LINK['url']}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("user list", ["grace", "grace@example.org", "active"]),
        ("user link grace", [LINK["url"]]),
        ("login", [LINK["url"]]),
        ("project list", ["research", "admin", "3", "2"]),
        ("project members research", ["grace", "launcher"]),
        ("token list", ["0c1d2e3f", "all", "never"]),
        ("audit", ["token:grace/ci", "run.launch", "192.0.2.7"]),
    ],
)
def test_lists_are_tables(
    requests: list[tuple[str, str, Any]], output: io.StringIO, command: str, words: list[str]
) -> None:
    assert run(command.split()) == 0
    assert all(word in output.getvalue() for word in words)


def test_names_neither_colour_nor_drive_the_terminal(requests: list[tuple[str, str, Any]], output: io.StringIO) -> None:
    assert run(["token", "list"]) == 0
    assert run(["audit"]) == 0
    assert "[red]ci\\x1b[2J" in output.getvalue()
    assert "[b]x" in output.getvalue()
    assert "\x1b" not in output.getvalue()


@pytest.mark.parametrize("name", [ID, "0c1d2e3f"])
def test_a_token_is_revoked_by_what_is_shown_of_it(
    requests: list[tuple[str, str, Any]], output: io.StringIO, name: str
) -> None:
    assert run(["token", "revoke", name]) == 0
    assert requests[-1][:2] == ("DELETE", f"/tokens/{ID}")


def test_an_unknown_token_is_not_revoked(
    requests: list[tuple[str, str, Any]], output: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["token", "revoke", "ffffffff"]) != 0
    assert len(requests) == 1


def test_the_audit_log_is_asked_for_no_more_than_is_shown(
    requests: list[tuple[str, str, Any]], output: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", "--actor", "grace", "--action", "run", "-n", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert {"actor": "grace", "action": "run"}.items() <= requests[0][2].items()
