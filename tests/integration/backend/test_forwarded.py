"""Who is noted in the audit log, with proxies and with those who play one."""

import os

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.embedded import application
from backend.embedded.home import Home
from backend.embedded.ports import Ports
from backend.main import create_app
from tests.ports import free_base_port

SPOOFED = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
LAST = "SELECT address FROM audit_entry WHERE action = 'run.launch' ORDER BY id DESC LIMIT 1"


@pytest.fixture
def audited_from(client, database, settings):
    """The address that is noted for a launch of this peer with these headers, where these proxies are listed."""

    def audited_from(peer, headers, proxies=""):
        listed = settings.model_validate({**settings.model_dump(by_alias=True), "FOREDECK_TRUSTED_PROXIES": proxies})
        app = create_app(listed)
        caller = TestClient(app, client=(peer, 1), headers=client.headers | headers)
        body = {"name": "x", "config": {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}}
        assert caller.post("/api/v1/runs", json=body).status_code == 202
        app.state.database.close()
        with database.transaction() as session:
            return session.scalar(text(LAST))

    return audited_from


def test_an_unlisted_peer_is_who_it_is_whatever_it_says(audited_from):
    assert audited_from("203.0.113.7", SPOOFED) == "203.0.113.7"
    assert audited_from("127.0.0.1", {"X-Forwarded-For": "198.51.100.2"}) == "127.0.0.1"
    assert audited_from("203.0.113.7", SPOOFED, "10.0.0.0/8") == "203.0.113.7"


def test_behind_a_listed_proxy_it_is_whom_the_proxy_heard(audited_from):
    spoofed = {"X-Forwarded-For": "127.0.0.1, 10.0.0.9, 198.51.100.2"}
    assert audited_from("10.0.0.1", spoofed, "10.0.0.0/8") == "198.51.100.2"


def test_the_service_as_it_is_started_believes_no_process_of_its_machine(client, database, settings, tmp_path):
    """uvicorn by itself takes the word of anybody at 127.0.0.1."""
    home, ports = Home(tmp_path), Ports(free_base_port())
    home.create()
    given = {name: str(value) for name, value in settings.model_dump(by_alias=True, exclude_defaults=True).items()}
    url = given["DATABASE_URL"], given["REDIS_URL"]
    service = application.api(application.environment(os.environ | given, home, ports, *url), home, ports)
    process = service.start()
    try:
        service.wait(process)
        headers = dict(client.headers) | {"X-Forwarded-For": "198.51.100.2"}
        body = {"name": "x", "config": {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}}
        address = f"http://127.0.0.1:{ports.api}/api/v1/runs"
        assert httpx.post(address, json=body, headers=headers, trust_env=False).status_code == 202
    finally:
        service.stop(process)
    with database.transaction() as session:
        assert session.scalar(text(LAST)) == "127.0.0.1"
