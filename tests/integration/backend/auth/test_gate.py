"""The gate, spoken to as a server speaks to it, so that reading a body can be seen."""

import asyncio

import pytest

from backend.auth.gate import MAX_BODY_BYTES
from contract.telemetry.events import MAX_BATCH_BYTES

CHUNK = 2**20


def ask(app, path, headers, num_chunks):
    """(status, chunks of the body that were read); the body has no announced length."""
    sent, num_read = [], 0

    async def receive():
        nonlocal num_read
        num_read += 1
        return {"type": "http.request", "body": b"{" * CHUNK, "more_body": num_read < num_chunks}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json"), *headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], num_read


def bearer(client):
    return (b"authorization", client.headers["authorization"].encode())


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/ingest", "/api/v1/nothing"])
def test_a_strangers_body_is_not_read(app, path):
    assert ask(app, path, [], 100) == (401, 0)
    assert ask(app, path, [(b"authorization", b"Bearer fdk_00000000_x")], 100) == (401, 0)


def test_an_announced_length_beyond_the_limit_is_refused_unread(app, client):
    length = (b"content-length", str(MAX_BODY_BYTES + 1).encode())
    assert ask(app, "/api/v1/runs", [bearer(client), length], 100) == (413, 0)


@pytest.mark.parametrize(("path", "limit"), [("/api/v1/runs", MAX_BODY_BYTES), ("/api/v1/ingest", MAX_BATCH_BYTES)])
def test_a_body_is_read_up_to_its_limit(app, make_client, path, limit):
    caller = [bearer(make_client("admin", "ingest"))]
    assert ask(app, path, caller, 1000) == (413, limit // CHUNK + 1)
    assert ask(app, path, caller, limit // CHUNK)[0] == 422


def test_the_public_login_is_limited_too(app):
    assert ask(app, "/api/v1/session", [], 100) == (413, MAX_BODY_BYTES // CHUNK + 1)


def test_too_large_a_body_is_a_problem(client):
    response = client.post("/api/v1/runs", content=b" " * (MAX_BODY_BYTES + 1))
    assert (response.status_code, response.headers["content-type"]) == (413, "application/problem+json")
    assert response.json()["detail"] == "The body exceeds 2 MiB: send less at once."
