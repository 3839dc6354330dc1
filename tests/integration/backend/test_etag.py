"""Edits that cross each other, and answers that are not sent twice."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

WEBHOOK = {"name": "chat", "url": "https://1.1.1.1/hook", "events": ["run.failed"]}
SWEEP = {"name": "x", "config": {"drafter": {"kind": "none"}}, "axes": {"seed": [1, 2]}}
CLUSTER = {"name": "far", "address": "http://127.0.0.1:1", "storage_dir": "/mnt", "api_url": "http://127.0.0.1:1"}


@pytest.fixture(params=["run", "sweep", "cluster", "webhook", "user"])
def editable(request, client, launch):
    """(path, a change, what it shows, a change by somebody else)."""
    if request.param == "run":
        return f"/api/v1/runs/{launch()['id']}", {"notes": "mine"}, "notes", {"notes": "theirs"}
    if request.param == "sweep":
        made = client.post("/api/v1/sweeps", json=SWEEP)
        return made.headers["location"], {"notes": "mine"}, "notes", {"notes": "theirs"}
    if request.param == "user":
        client.post("/api/v1/users", json={"name": "grace"})
        return "/api/v1/users/grace", {"email": "mine@example.org"}, "email", {"email": "theirs@example.org"}
    if request.param == "webhook":
        made = client.post("/api/v1/webhooks", json=WEBHOOK)
        return made.headers["location"], {"name": "mine"}, "name", {"name": "theirs"}
    client.post("/api/v1/clusters", json=CLUSTER)
    return "/api/v1/clusters/far", {"storage_dir": "/mine"}, "storage_dir", {"storage_dir": "/theirs"}


def patch(client, path, change, tag):
    return client.patch(path, json=change, headers={"If-Match": tag})


def test_a_change_of_what_was_changed_meanwhile_is_refused(client, editable):
    path, mine, shown, theirs = editable
    tag = client.get(path).headers["etag"]
    assert patch(client, path, theirs, tag).status_code == 200
    stale = patch(client, path, mine, tag)
    assert (stale.status_code, stale.headers["content-type"]) == (412, "application/problem+json")
    now = client.get(path)
    assert now.json()[shown] == theirs[shown]
    mended = patch(client, path, mine, now.headers["etag"])
    assert (mended.status_code, mended.json()[shown]) == (200, mine[shown])
    assert patch(client, path, theirs, mended.headers["etag"]).status_code == 200


def test_without_a_tag_the_last_change_wins(client, editable):
    path, mine, shown, theirs = editable
    client.patch(path, json=theirs)
    assert client.patch(path, json=mine).json()[shown] == mine[shown]


def test_of_many_changes_of_the_same_state_one_is_made(app, client, editable):
    path, mine, _, _ = editable
    tag, start = client.get(path).headers["etag"], threading.Barrier(8)

    def change(number):
        body = {name: f"{value}{number}" for name, value in mine.items()}
        start.wait()
        return patch(TestClient(app, headers=client.headers), path, body, tag).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(change, range(8))) == [200] + [412] * 7


def test_a_heartbeat_changes_what_is_seen_but_not_what_is_edited(client, launch, database):
    path = f"/api/v1/runs/{launch()['id']}"
    first = client.get(path)
    same = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    with database.transaction() as session:
        session.execute(text("UPDATE run SET step = 3, stage = 'train', last_heartbeat_at = now()"))
    seen = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (seen.status_code, seen.json()["step"]) == (200, 3)
    assert patch(client, path, {"notes": "still fits"}, first.headers["etag"]).status_code == 200
