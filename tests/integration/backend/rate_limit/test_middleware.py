"""Limits as callers and attackers meet them. Time is the test's own."""

import asyncio

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.auth.service import issue_worker_token
from backend.main import create_app
from backend.rate_limit.buckets import RedisBuckets
from backend.rate_limit.streams import open_streams

LIMITS = {
    "FOREDECK_RATE_LIMIT": "20",
    "FOREDECK_INGEST_RATE_LIMIT": "40",
    "FOREDECK_STRANGER_RATE_LIMIT": "10",
    "FOREDECK_LOGIN_RATE_LIMIT": "5",
    "FOREDECK_MAX_STREAMS": "2",
    "FOREDECK_TRUSTED_PROXIES": "10.0.0.0/8",
}
SESSION = "/api/v1/session"


@pytest.fixture
def settings(settings):
    return settings.model_validate({**settings.model_dump(by_alias=True), **LIMITS})


def patient(app):
    """Told 0.25 s late by a busy machine what Redis counts, it would count for itself from then on."""
    app.state.limiter._shared.close()
    app.state.limiter._shared = RedisBuckets(app.state.settings.redis_url, timeout_s=30)
    return app


@pytest.fixture
def app(app):
    yield patient(app)
    app.state.limiter.close()


@pytest.fixture
def clock(app):
    now = [1_000_000.0]
    app.state.limiter.clock = lambda: now[0]
    return now


@pytest.fixture
def stranger(app, clock):
    def stranger(address="203.0.113.7", **headers):
        return TestClient(app, client=(address, 1), headers=headers)

    return stranger


def statuses(client, path, num, **options):
    return [client.get(path, **options).status_code for _ in range(num)]


def test_a_caller_is_told_what_is_left_and_when_to_come_again(client, clock):
    answers = [client.get("/api/v1/runs") for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert answers[0].headers["RateLimit-Policy"] == '"caller";q=20;w=60'
    assert answers[0].headers["RateLimit"] == '"caller";r=19;t=3'
    refused = answers[-1]
    assert (refused.headers["content-type"], refused.headers["retry-after"]) == ("application/problem+json", "3")
    assert refused.headers["RateLimit"] == '"caller";r=0;t=60'
    assert refused.json()["detail"].endswith("20 a minute are let in. Try again in 3 s.")
    assert refused.json()["request_id"] == refused.headers["x-request-id"]
    clock[0] += 3
    assert statuses(client, "/api/v1/runs", 2) == [200, 429]
    clock[0] += 60
    assert statuses(client, "/api/v1/runs", 21) == [200] * 20 + [429]


def test_each_token_counts_for_itself_wherever_it_comes_from(app, client, make_client, clock):
    assert set(statuses(client, "/api/v1/runs", 20)) == {200}
    elsewhere = TestClient(app, client=("198.51.100.1", 1), headers=client.headers)
    assert elsewhere.get("/api/v1/runs").status_code == 429
    assert make_client("read").get("/api/v1/runs").status_code == 200


def test_processes_share_what_they_count(app, client, settings, clock):
    other = patient(create_app(settings))
    other.state.limiter.clock = lambda: clock[0]
    seen = [statuses(TestClient(each, headers=client.headers), "/api/v1/runs", 10) for each in (app, other)]
    assert set(seen[0] + seen[1]) == {200}
    for each in (app, other):
        assert TestClient(each, headers=client.headers).get("/api/v1/runs").status_code == 429
    other.state.database.close()
    other.state.limiter.close()


def test_without_redis_each_process_counts_and_nothing_fails(client, app, settings, database_url):
    down = create_app(
        settings.model_validate({**settings.model_dump(by_alias=True), "REDIS_URL": "redis://127.0.0.1:1/0"})
    )
    now = [0.0]
    down.state.limiter.clock = lambda: now[0]
    assert statuses(TestClient(down, headers=client.headers), "/api/v1/runs", 21) == [200] * 20 + [429]
    down.state.database.close()


def test_when_redis_comes_back_it_counts_again(client, app, clock, redis_url, caplog):
    caplog.set_level("INFO", "backend.rate_limit")
    limiter, shared = app.state.limiter, app.state.limiter._shared
    client.get("/api/v1/runs")
    limiter._shared = RedisBuckets("redis://127.0.0.1:1/0")
    assert client.get("/api/v1/runs").headers["RateLimit"] == '"caller";r=19;t=3'
    limiter._shared = shared
    assert client.get("/api/v1/runs").headers["RateLimit"] == '"caller";r=18;t=6'
    clock[0] += 6
    assert client.get("/api/v1/runs").headers["RateLimit"] == '"caller";r=19;t=3'
    assert [record.message for record in caplog.records if "counts" in record.message] == [
        "Redis counts no requests: each process counts its own",
        "Redis counts requests again",
    ]


def test_strangers_are_counted_by_address(stranger):
    assert statuses(stranger(), "/api/v1/runs", 11) == [401] * 10 + [429]
    assert statuses(stranger("203.0.113.8"), "/api/v1/runs", 1) == [401]


def test_an_ipv6_network_is_one_stranger(stranger):
    seen = [stranger(f"2001:db8::{number}").get("/api/v1/runs").status_code for number in range(1, 12)]
    assert seen == [401] * 10 + [429]
    assert statuses(stranger("2001:db8:0:1::1"), "/api/v1/runs", 1) == [401]


def test_spoofed_addresses_do_not_help(stranger):
    seen = [stranger(**{"X-Forwarded-For": f"198.51.100.{n}"}).get("/api/v1/runs").status_code for n in range(11)]
    assert seen == [401] * 10 + [429]
    behind = [stranger("10.0.0.1", **{"X-Forwarded-For": f"127.0.0.{n}, 198.51.100.9"}) for n in range(11)]
    assert [client.get("/api/v1/runs").status_code for client in behind] == [401] * 10 + [429]
    other = stranger("10.0.0.1", **{"X-Forwarded-For": "198.51.100.8"})
    assert other.get("/api/v1/runs").status_code == 401


def test_whoever_tries_tokens_is_soon_refused_and_known_callers_of_the_same_address_are_not(
    app, client, make_client, stranger
):
    known = stranger(authorization=client.headers["authorization"])
    assert known.get("/api/v1/runs").status_code == 200
    tried = [stranger(authorization=f"Bearer fdk_0123abcd_{number}").get("/api/v1/runs") for number in range(12)]
    assert [answer.status_code for answer in tried] == [401] * 10 + [429] * 2
    assert set(statuses(known, "/api/v1/runs", 5)) == {200}
    newcomer = stranger(authorization=make_client("read").headers["authorization"])
    assert newcomer.get("/api/v1/runs").status_code == 429
    assert stranger("203.0.113.8", authorization=newcomer.headers["authorization"]).get("/api/v1/runs").is_success


def test_a_revoked_token_is_a_stranger_again(client, stranger, database):
    known = stranger(authorization=client.headers["authorization"])
    assert known.get("/api/v1/runs").status_code == 200
    with database.transaction() as session:
        session.execute(text("UPDATE api_token SET revoked_at = now()"))
    assert statuses(known, "/api/v1/runs", 11) == [401] * 10 + [429]


def test_public_routes_make_nobody_known(stranger):
    """Or a random token would be let past the strangers' limit."""
    for number in range(5):
        assert stranger(authorization=f"Bearer {number}").get("/api/v1/login").status_code == 200
    seen = [stranger(authorization=f"Bearer {number}").get("/api/v1/runs").status_code for number in range(5)]
    assert seen == [401] * 5
    assert stranger(authorization="Bearer 1").get("/api/v1/runs").status_code == 429


def test_failed_logins_are_few_and_good_ones_are_free(stranger, client):
    def log_in(code):
        return stranger().post(SESSION, json={"code": code})

    def code():
        return client.post("/api/v1/login-links").json()["url"].partition("code=")[2]

    assert [log_in("wrong").status_code for _ in range(4)] == [401] * 4
    assert [log_in(code()).status_code for _ in range(3)] == [200] * 3
    assert [log_in("wrong").status_code for _ in range(2)] == [401, 429]
    refused = log_in(code())
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "12")
    assert refused.headers["RateLimit-Policy"] == '"login";q=5;w=60'
    assert stranger("203.0.113.8").post(SESSION, json={"code": "wrong"}).status_code == 401


def test_probes_are_not_refused_for_what_others_do(stranger):
    assert 429 in statuses(stranger(), "/api/v1/runs", 11)
    assert set(statuses(stranger(), "/api/v1/health", 50)) == {200}
    assert stranger().get("/api/v1/ready").status_code == 200


def test_ingest_has_a_limit_of_its_own(app, launch, client, database, clock):
    with database.transaction() as session:
        token = issue_worker_token(session, launch()["id"])
    worker = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    first = worker.post("/api/v1/ingest", json={})
    assert (first.status_code, first.headers["RateLimit"]) == (422, '"ingest";r=39;t=2')


def test_the_dashboards_files_are_not_counted(stranger):
    assert 429 not in statuses(stranger(), "/", 30)


class Stream:
    """A request that is answered without an end, spoken to as a server speaks to it."""

    def __init__(self, app, client, path="/api/v1/stream"):
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "scheme": "http", "root_path": ""}
        scope["headers"] = [(b"authorization", client.headers["authorization"].encode())]
        self.has_begun, self.is_left = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(app({**scope, "client": ("127.0.0.1", 1)}, self.receive, self.send))

    async def receive(self):
        await self.is_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.has_begun.set()

    async def begin(self):
        await self.has_begun.wait()
        return self.status

    async def leave(self):
        self.is_left.set()
        await self.task


def test_streams_of_a_caller_are_few(app, client, make_client, launch, clock):
    other = make_client("read")
    logs = f"/api/v1/runs/{launch()['id']}/logs/stream"

    async def open_and_leave():
        first, second = Stream(app, client), Stream(app, client, logs)
        assert [await first.begin(), await second.begin()] == [200, 200]
        assert await Stream(app, client).begin() == 429
        of_another = Stream(app, other)
        assert await of_another.begin() == 200
        await first.leave()
        third = Stream(app, client)
        assert await third.begin() == 200
        assert sum(open_streams(app).values()) == 3
        for stream in (second, third, of_another):
            await stream.leave()

    asyncio.run(open_and_leave())
    assert open_streams(app) == {}
