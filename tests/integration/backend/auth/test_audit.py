"""The audit log: every change of every route is in it, and everybody reads what they may."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from uuid import UUID

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from backend.openapi_examples import REQUESTS

AUDIT = "/api/v1/audit"
NO_CHANGE = {
    "run_config_validate": "changes nothing",
    "ingest": "a worker's measurements, which are kept themselves; what follows from them is in the run's log",
}
BY_HAND = {"session_create", "session_delete", "worker_tokens_create"}
"""Callers without a token: tested below; and a worker's starter, in workers/test_routes.py."""


@pytest.fixture
def ray():
    """Address of what takes every job."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"job_id": "x", "submission_id": "x"}')

        def log_message(self, *_):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{listener.server_address[1]}"
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture
def make(client, ray):
    """Things to change, by path parameter: a new one for each operation."""
    numbers = count()

    def post(path, body):
        response = client.post(f"/api/v1{path}", json=body)
        assert response.is_success, response.text
        return response.json()

    def webhook():
        return post("/webhooks", {**REQUESTS["webhooks_create"], "name": f"w{next(numbers)}"})["id"]

    def deliver(webhook_id):
        post(f"/webhooks/{webhook_id}/ping", None)
        return client.get(f"/api/v1/webhooks/{webhook_id}/deliveries").json()["items"][0]["id"]

    def member():
        name = post("/users", {"name": f"u{next(numbers)}"})["name"]
        client.put(f"/api/v1/projects/default/members/{name}", json={"role": "viewer"})
        return name

    cluster = {**REQUESTS["clusters_create"], "address": ray, "code": {"kind": "installed"}}
    simple = {
        "run_id": lambda: post("/runs", REQUESTS["runs_create"])["id"],
        "sweep_id": lambda: post("/sweeps", REQUESTS["sweeps_create"])["id"],
        "webhook_id": webhook,
        "token_id": lambda: post("/tokens", REQUESTS["tokens_create"])["id"],
        "project": lambda: post("/projects", {"name": f"p{next(numbers)}"})["name"],
        "user": member,
        "name": lambda: post("/clusters", {**cluster, "name": f"c{next(numbers)}"})["name"],
    }

    def make(parameters):
        values = {name: simple[name]() for name in parameters if name != "delivery_id"}
        if "delivery_id" in parameters:
            values["delivery_id"] = deliver(values["webhook_id"])
        if {"project", "user"} <= values.keys():
            values["project"] = "default"
        return values

    return make


def changing(app):
    for route in app.routes:
        for method in sorted(getattr(route, "methods", None) or ()):
            if isinstance(route, APIRoute) and method not in {"GET", "HEAD", "OPTIONS"}:
                yield method, route, route.operation_id or route.name


def test_every_changing_operation_writes_an_entry(app, client, make):
    operations = [item for item in changing(app) if item[2] not in NO_CHANGE.keys() | BY_HAND]
    silent = []
    for method, route, name in operations:
        values = make(re.findall(r"{(\w+)}", route.path))
        url = re.sub(r"{(\w+)}", lambda parameter, values=values: values[parameter[1]], route.path)
        response = client.request(method, url, json=REQUESTS.get(name), headers={"X-Request-ID": f"try-{name}"})
        assert response.is_success, (name, response.text)
        newest = client.get(AUDIT, params={"limit": 1}).json()["items"][0]
        caller = (newest["actor"], newest["request_id"], newest["address"])
        if caller != ("token:admin/test", f"try-{name}", "testclient"):
            silent.append(name)
    assert silent == []
    assert len(operations) > 20
    assert {name for _, _, name in changing(app)} >= NO_CHANGE.keys() | BY_HAND


def test_logins_refused_logins_and_logouts_stand_in_it(app, client, log_in):
    browser = log_in("admin")
    browser.delete("/api/v1/session")
    TestClient(app).post("/api/v1/session", json={"code": "worthless"})
    entries = client.get(AUDIT, params={"action": "session"}).json()["items"]
    assert [(entry["actor"], entry["action"]) for entry in entries] == [
        ("stranger", "session.refuse"),
        ("user:admin", "session.delete"),
        ("user:admin", "session.create"),
    ]
    assert {entry["address"] for entry in entries} == {"testclient"}
    assert all(entry["request_id"] for entry in entries)


def test_no_secret_stands_in_it(app, client, make, log_in):
    link = client.post("/api/v1/login-links").json()["url"].partition("#code=")[2]
    token = client.post("/api/v1/tokens", json=REQUESTS["tokens_create"]).json()["token"]
    cookie = log_in("admin").cookies["foredeck_session"]
    text = client.get(AUDIT, params={"limit": 200}).text
    assert not any(secret in text for secret in (link, token.split("_", 2)[2], cookie))


def test_a_refused_change_leaves_no_entry(client, alice, launch_in):
    before = client.get(AUDIT, params={"limit": 1}).json()["items"][0]["id"]
    assert alice.post("/api/v1/users", json={"name": "x"}).status_code == 403
    assert client.post("/api/v1/users", json={"name": "alice"}).status_code == 409
    assert client.get(AUDIT, params={"limit": 1}).json()["items"][0]["id"] == before


def test_who_administers_a_project_reads_its_entries_alone(client, alice, carol, launch_in):
    of_a, of_b = launch_in(alice, "a"), launch_in(client, "b")
    entries = carol.get(AUDIT, params={"limit": 200}).json()["items"]
    assert {entry["project"] for entry in entries} == {"a"}
    targets = {entry["target"] for entry in entries}
    assert of_a["id"] in targets
    assert of_b["id"] not in targets
    assert carol.get(AUDIT, params={"project": "b"}).json()["items"] == []
    assert [entry["target"] for entry in carol.get(AUDIT, params={"target": of_b["id"]}).json()["items"]] == []
    assert [
        entry["target"] for entry in client.get(AUDIT, params={"project": "b", "action": "run"}).json()["items"]
    ] == [of_b["id"]]


def test_others_do_not_read_it(client, alice, bob, carol, bearer):
    for caller in (alice, bob, bearer(client, ["write"]), bearer(carol, ["write"])):
        assert caller.get(AUDIT).status_code == 403
    assert bearer(carol, ["admin"]).get(AUDIT).status_code == 200


def test_it_is_read_page_by_page(client, launch_in):
    for _ in range(5):
        launch_in(client, None)
    whole = client.get(AUDIT, params={"limit": 200}).json()["items"]
    assert [entry["id"] for entry in whole] == sorted((entry["id"] for entry in whole), reverse=True)
    pages, cursor = [], None
    while True:
        page = client.get(AUDIT, params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        pages += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == whole
    for bad in ("x", "WyJhIl0", "W10"):
        refused = client.get(AUDIT, params={"cursor": bad})
        assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "cursor")


def test_an_actor_is_a_user_with_their_tokens_or_one_of_them(client, alice, bearer, launch_in):
    own, by_token = launch_in(alice, "a"), launch_in(bearer(alice, ["write"]), "a")

    def targets(actor):
        found = client.get(AUDIT, params={"actor": actor, "action": "run.launch"}).json()["items"]
        return [entry["target"] for entry in found]

    assert targets("alice") == [by_token["id"], own["id"]]
    assert targets("user:alice") == [own["id"]]
    assert targets("token:alice/t") == [by_token["id"]]
    assert targets("alic") == targets("%") == targets("nobody") == []


@pytest.mark.parametrize("parameter", ["actor", "action", "target", "project"])
@pytest.mark.parametrize("value", ["' OR 1=1 --", "%", "_", "\\", str(UUID(int=1))])
def test_filters_are_values_and_nothing_else(client, parameter, value):
    answer = client.get(AUDIT, params={parameter: value})
    assert (answer.status_code, answer.json()["items"]) == (200, [])
