"""Requests that are sent again, by threads at once and after what can go wrong."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from psycopg import connect
from sqlalchemy import event, text

from backend.idempotency.route import IdempotentRoute, is_idempotent
from backend.launcher import service as launcher

RUN = {"name": "once", "config": {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}}
CLUSTER = {"name": "far", "address": "http://127.0.0.1:1", "storage_dir": "/mnt", "api_url": "http://127.0.0.1:1"}


def post(client, key, path="/runs", json=RUN):
    return client.post(f"/api/v1{path}", json=json, headers={"Idempotency-Key": key})


def count(database, table):
    with database.transaction() as session:
        return session.scalar(text(f"SELECT count(*) FROM {table}"))


def test_a_repeated_request_is_carried_out_once_and_answered_the_same(client, database):
    first, again = post(client, "k"), post(client, "k")
    assert first.status_code == again.status_code == 202
    assert first.content == again.content
    for name in ("location", "content-type", "content-length"):
        assert first.headers[name] == again.headers[name]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert count(database, "run") == count(database, "outbox") == 1
    assert post(client, "other").json()["id"] != first.json()["id"]


def test_without_a_key_each_request_counts(client, database):
    for _ in range(2):
        assert client.post("/api/v1/runs", json=RUN).status_code == 202
    assert (count(database, "run"), count(database, "idempotency_key")) == (2, 0)


def test_clones_and_clusters_are_made_once_too(client, database):
    run = post(client, "k").json()
    clones = [post(client, "c", f"/runs/{run['id']}/clone", {}) for _ in range(2)]
    assert clones[0].content == clones[1].content
    clusters = [post(client, "d", "/clusters", CLUSTER) for _ in range(2)]
    assert [answer.status_code for answer in clusters] == [201, 201]
    assert clusters[0].content == clusters[1].content
    assert clusters[1].json()["reachability"]["state"] == "unreachable"
    assert count(database, "run") == 2


@pytest.mark.parametrize(
    ("path", "json"),
    [("/runs", RUN | {"name": "two"}), ("/clusters", CLUSTER), ("/runs", {"name": ""})],
)
def test_a_key_is_good_for_one_request(client, database, path, json):
    post(client, "k")
    refused = post(client, "k", path, json)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    (error,) = refused.json()["errors"]
    assert (error["parameter"], error["value"]) == ("Idempotency-Key", "k")
    assert count(database, "run") == 1


@pytest.mark.parametrize("key", ["", " ", "a b", "a" * 201, "ä".encode("latin-1"), b"a\x00b"])
def test_a_key_is_short_printable_ascii(client, database, key):
    refused = post(client, key)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["parameter"] == "Idempotency-Key"
    assert count(database, "run") == 0
    assert post(client, "!" * 200).status_code == 202


def test_each_caller_has_keys_of_its_own(client, make_client, database):
    other = make_client("admin")
    assert post(client, "k").json()["id"] != post(other, "k").json()["id"]
    assert count(database, "run") == 2


def test_who_may_no_longer_see_it_is_not_given_the_answer_again(make_client, launch, database):
    origin, client = launch(), make_client("write")
    path = f"/runs/{origin['id']}/clone"
    assert post(client, "k", path, {}).status_code == 202
    with database.transaction() as session:
        session.execute(text("UPDATE user_account SET is_admin = false"))
    assert post(client, "k", path, {}).status_code == 404
    with database.transaction() as session:
        session.execute(text("UPDATE user_account SET is_admin = true"))
        session.execute(text("UPDATE api_token SET scopes = '{read}'"))
    assert post(client, "k").status_code == 403


def test_a_refused_request_leaves_its_key_free(client, database):
    assert post(client, "k", json=RUN | {"cluster": "moon"}).status_code == 422
    assert post(client, "k", json=RUN | {"cluster": 3}).status_code == 422
    assert count(database, "idempotency_key") == 0
    assert post(client, "k").status_code == 202


def test_a_transaction_that_fails_at_its_commit_leaves_its_key_free(client, database):
    is_armed = [True]

    def cut(connection):
        if is_armed and connection.exec_driver_sql("SELECT count(*) FROM idempotency_key").scalar():
            is_armed.clear()
            connection.connection.driver_connection.close()

    event.listen(database.engine, "commit", cut)
    lost = post(client, "k")
    assert lost.status_code == 503
    assert "again with the same Idempotency-Key" in lost.json()["detail"]
    assert (is_armed, count(database, "run"), count(database, "idempotency_key")) == ([], 0, 0)
    assert post(client, "k").status_code == 202


@pytest.fixture
def held_up(app, database_url, client):
    """A launch with key `k` that waits amid its transaction: (thread, its answers, who holds it up, its process)."""
    with connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute("SELECT 1 FROM cluster FOR UPDATE")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(post(client, "k")))
        thread.start()
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while (found := connection.execute(waiting).fetchone()) is None:
            connection.execute("SELECT pg_stat_clear_snapshot()")
        yield thread, answers, connection, found[0]
        thread.join()


def test_a_repetition_while_the_first_is_at_work_is_put_off(app, client, held_up, database):
    thread, answers, connection, _ = held_up
    early = post(TestClient(app, headers=client.headers), "k")
    assert (early.status_code, early.headers["retry-after"]) == (409, "1")
    assert "still at work" in early.json()["detail"]
    connection.rollback()
    thread.join()
    again = post(client, "k")
    assert again.content == answers[0].content
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    assert count(database, "run") == 1


def test_a_request_that_was_cut_off_in_flight_leaves_its_key_free(client, held_up, database):
    thread, answers, connection, pid = held_up
    connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    thread.join()
    connection.rollback()
    assert answers[0].status_code == 503
    assert count(database, "run") == 0
    assert post(client, "k").status_code == 202


def test_of_many_requests_at_once_one_makes_a_run(app, client, database):
    start = threading.Barrier(16)

    def send(_):
        start.wait()
        return post(TestClient(app, headers=client.headers), "k")

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(send, range(16)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {202, 409}
    made = {answer.content for answer in answers if answer.status_code == 202}
    assert len(made) == 1
    assert [answer.headers.get("idempotency-replayed") for answer in answers if answer.is_success].count(None) == 1
    assert post(client, "k").content in made
    assert count(database, "run") == count(database, "idempotency_key") == 1


def age(database, hours):
    with database.transaction() as session:
        session.execute(text(f"UPDATE idempotency_key SET created_at = created_at - interval '{hours} hours'"))


def test_a_key_is_forgotten_after_a_day(client, database):
    first = post(client, "k").json()["id"]
    age(database, 23)
    assert post(client, "k").json()["id"] == first
    age(database, 2)
    assert post(client, "k", json=RUN | {"name": "another"}).json()["id"] != first
    assert post(client, "k", json=RUN | {"name": "another"}).headers["idempotency-replayed"] == "true"
    assert count(database, "idempotency_key") == 1


def test_forgotten_keys_are_cleared_away(app, client, database):
    post(client, "old")
    age(database, 25)
    post(client, "new")
    launcher.trim(database, app.state.settings)
    with database.transaction() as session:
        assert session.scalars(text("SELECT key FROM idempotency_key")).all() == ["new"]


def test_a_token_is_made_once_and_its_secret_is_stored_nowhere(client, database):
    body = {"name": "ci", "scopes": ["read"]}
    made, again = post(client, "k", "/tokens", body), post(client, "k", "/tokens", body)
    assert (made.status_code, again.status_code) == (201, 409)
    assert "shown once: take a new key" in again.json()["detail"]
    assert "retry-after" not in again.headers
    with database.transaction() as session:
        assert session.scalar(text("SELECT body FROM idempotency_key")) is None
        assert session.scalar(text("SELECT count(*) FROM api_token WHERE name = 'ci'")) == 1
        kept = session.scalar(text("SELECT CAST(idempotency_key AS text) FROM idempotency_key"))
    assert made.json()["token"] not in kept


WITHOUT = {
    "clusters_check",  # a second look at the machines does no harm
    "login_links_create",  # neither does a second link; and each is a secret
    "users_login_link",
    "runs_stop",  # stopping twice is stopping once
    "sweeps_stop",
    "worker_tokens_create",  # only the last of several works
}


def test_whatever_makes_something_takes_a_key(app):
    without = set()
    for path in app.openapi()["paths"].values():
        operation = path.get("post", {})
        takes = {parameter["name"] for parameter in operation.get("parameters", [])}
        if {"201", "202"} & operation.get("responses", {}).keys() and "Idempotency-Key" not in takes:
            without.add(operation["operationId"])
    assert without == WITHOUT, "give the route an Idempotent, and its router the IdempotentRoute"


def test_every_route_that_takes_a_key_keeps_its_answer(app):
    routes = [route for route in app.routes if isinstance(route, APIRoute) and is_idempotent(route.dependant)]
    assert len(routes) >= 4
    assert all(isinstance(route, IdempotentRoute) for route in routes)
