"""An id for every request: in its answer, in its problem, in its lines of the log, and in nobody else's."""

import asyncio
import json
import logging

import pytest

from backend import logs

PROBLEMS = {
    "no token": ("GET", "/api/v1/runs", {"headers": {"Authorization": "Bearer x"}}, 401),
    "no such path": ("GET", "/api/v1/nothing", {}, 404),
    "no such run": ("GET", "/api/v1/runs/0b9c1d9e-0000-4000-8000-000000000000", {}, 404),
    "no such method": ("PUT", "/api/v1/runs", {"json": {}}, 405),
    "no JSON": ("POST", "/api/v1/runs", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 422),
    "a bad parameter": ("GET", "/api/v1/runs?limit=0", {}, 422),
    "a bad key": ("POST", "/api/v1/runs", {"json": {}, "headers": {"Idempotency-Key": " "}}, 422),
    "too much": ("POST", "/api/v1/runs", {"content": b" " * (2**21 + 1)}, 413),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_the_id_of_its_request(client, name):
    method, path, options, status = PROBLEMS[name]
    headers = {**options.get("headers", {}), "X-Request-ID": f"mine-{status}"}
    answer = client.request(method, path, **{**options, "headers": headers})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == f"mine-{status}"


def test_limits_have_it_too(client, app, monkeypatch):
    limiter = app.state.limiter
    limiter.policies = {name: type(policy)(name, 1) for name, policy in limiter.policies.items()}
    limiter.clock = lambda: 0.0
    client.get("/api/v1/runs")
    refused = client.get("/api/v1/runs", headers={"X-Request-ID": "mine"})
    assert (refused.status_code, refused.json()["request_id"]) == (429, "mine")


@pytest.fixture
def ask(app, client):
    """Sends a request as it comes off the wire; (id in the answer, the lines of the log)."""

    def ask(given, path="/api/v1/nothing", form="json"):
        sent, lines = [], []
        handler = logging.Handler()
        handler.setFormatter(logs.JsonFormatter() if form == "json" else logs.TextFormatter("%(message)s"))
        handler.emit = lambda record: lines.append(handler.format(record))

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        headers = [(b"authorization", client.headers["authorization"].encode())]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "scheme": "http", "root_path": ""}
        scope |= {"headers": [*headers, (b"x-request-id", given)], "client": ("127.0.0.1", 1), "app": app}
        logger = logging.getLogger("backend.access")
        level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        asyncio.run(app(scope, receive, send))
        logger.removeHandler(handler)
        logger.setLevel(level)
        return dict(sent[0]["headers"])[b"x-request-id"], lines

    return ask


@pytest.mark.parametrize(
    "forged",
    [
        b"a\nb",
        b"a\r\nSet-Cookie: x=1",
        b"",
        b"a b",
        b"x" * 65,
        b"\x1b[2J",
        b'a","level":"critical',
        b"a\n",
        "ü".encode(),
    ],
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_an_id_that_could_begin_a_line_is_replaced(ask, forged, form):
    given, lines = ask(forged, form=form)
    assert given != forged
    assert len(given) == 32
    assert len(lines) == 1
    assert given.decode() in lines[0]
    assert lines[0].isprintable()


def test_a_path_begins_no_line_either(ask):
    for form in ("json", "text"):
        _, (line,) = ask(b"mine", "/api/v1/x\n2026-01-01 CRITICAL forged", form)
        assert line.isprintable()
    _, (line,) = ask(b"mine", "/api/v1/x")
    assert json.loads(line)["request_id"] == "mine"
