"""Who is noted in the audit log, with proxies and with those who play one."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.main import create_app

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
