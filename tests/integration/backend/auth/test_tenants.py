"""Two tenants: whatever belongs to project a is nothing to one who has a role in b alone, by id, list or stream."""

import asyncio
import json
import re
from uuid import UUID, uuid4

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from backend.auth.guard import OWNED, PUBLIC, guarded_path_parameters, guarding_scopes
from backend.auth.service import issue
from backend.openapi_examples import REQUESTS
from backend.telemetry import follow

UNKNOWN_ID = str(uuid4())
MARK = "xyzzy"
"""Stands in everything of project a that has words."""


@pytest.fixture
def mine(alice, carol, launch_in):
    """Of each kind of thing that belongs to a project one in a, by the path parameter that names it."""
    words = {"name": f"of a {MARK}", "labels": {"mark": MARK}, "notes": MARK}
    run = launch_in(alice, "a", config=REQUESTS["runs_create"]["config"], **words)
    sweep = alice.post("/api/v1/sweeps", json={**REQUESTS["sweeps_create"], **words, "project": "a"})
    webhook = carol.post("/api/v1/webhooks", json={**REQUESTS["webhooks_create"], "name": MARK, "project": "a"})
    assert (sweep.status_code, webhook.status_code) == (202, 201), sweep.text + webhook.text
    ids = {"run_id": run["id"], "sweep_id": sweep.json()["id"], "webhook_id": webhook.json()["id"]}
    return {**ids, "project": "a", "delivery_id": str(uuid4())}


def owned_routes(app):
    for route in app.routes:
        if isinstance(route, APIRoute) and (names := OWNED & set(re.findall(r"{(\w+)}", route.path))):
            for method in sorted(route.methods):
                yield method, route, names


def send(browser, method, route, values):
    path = re.sub(r"{(\w+)}", lambda parameter: values.get(parameter[1], "x"), route.path)
    return browser.request(method, path, json=REQUESTS.get(route.operation_id) if method != "GET" else None)


def shape(response, *own_names):
    body = response.json()
    del body["request_id"]
    text = json.dumps(body)
    for name in own_names:
        text = re.sub(rf"\b{re.escape(name)}\b", "_", text)
    return response.status_code, response.headers["content-type"], text


def test_every_kind_of_thing_is_in_this_test(mine):
    assert set(mine) >= OWNED


def test_what_is_foreign_is_to_every_route_as_if_it_were_not_there(app, bob, mine):
    unknown = {name: "no-such" if name == "project" else UNKNOWN_ID for name in mine}
    num_asked = 0
    for method, route, _ in owned_routes(app):
        foreign = shape(send(bob, method, route, mine), *mine.values())
        missing = shape(send(bob, method, route, unknown), *unknown.values())
        assert foreign == missing, (method, route.path)
        assert foreign[:2] == (404, "application/problem+json"), (method, route.path, foreign)
        num_asked += 1
    assert num_asked > 20


def test_whoever_may_sees_the_same_routes(app, alice, mine):
    """So that the 404s above are not those of a test that asks for nothing."""
    reading = [(method, route) for method, route, names in owned_routes(app) if method == "GET"]
    found = [route.path for method, route in reading if send_briefly(alice, method, route, mine) != 404]
    assert "/api/v1/runs/{run_id}" in found
    assert "/api/v1/runs/{run_id}/series" in found
    assert "/api/v1/projects/{project}/members" in found


def send_briefly(browser, method, route, values):
    """Without waiting for what may never be."""
    if "stream" in route.path:
        return 200
    path = re.sub(r"{(\w+)}", lambda parameter: values.get(parameter[1], "x"), route.path)
    return browser.request(method, path, params={"timeout_s": 0} if path.endswith("/wait") else None).status_code


def test_viewers_change_nothing(app, make_user, mine):
    viewer = make_user("vera", a="viewer")
    answers = {
        (method, route.path): send(viewer, method, route, mine).status_code
        for method, route, _ in owned_routes(app)
        if method != "GET"
    }
    assert len(answers) >= 6
    assert set(answers.values()) == {403}, answers
    launched = viewer.post("/api/v1/runs", json={**REQUESTS["runs_create"], "project": "a"})
    assert launched.status_code == 403


def test_a_token_of_scope_read_changes_nothing_whatever_its_users_role(app, client, bearer, mine):
    reader = bearer(client, ["read"])
    for method, route, _ in owned_routes(app):
        if method != "GET" and not guarding_scopes(route.dependant) & {"start", "ingest"}:
            assert send(reader, method, route, mine).status_code == 403, (method, route.path)


@pytest.mark.parametrize(("scope", "path"), [("start", "/api/v1/ingest/token"), ("ingest", "/api/v1/ingest")])
def test_a_workers_token_opens_nothing_but_the_reports_of_its_run(app, database, alice, mine, scope, path):
    with database.transaction() as session:
        token, _ = issue(session, "worker", [scope], None, run_id=UUID(mine["run_id"]), attempt=1)
    worker = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    opened = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods
        if (method, route.path) not in PUBLIC and send(worker, method, route, mine).status_code != 403
    }
    assert opened == {("POST", path)}


def test_every_owned_path_parameter_is_guarded(app):
    for _, route, names in owned_routes(app):
        assert names <= guarded_path_parameters(route.dependant)


def lists_of(app):
    return [
        route.path
        for route in app.routes
        if isinstance(route, APIRoute)
        and "GET" in route.methods
        and "{" not in route.path
        and "stream" not in route.path
    ]


def test_lists_hold_nothing_foreign(app, bob, alice, mine, launch_in, client):
    own = launch_in(client, "b", name="of b")
    for path in lists_of(app):
        text = bob.get(path, follow_redirects=False).text
        assert MARK not in text, path
        assert not any(name in text for parameter, name in mine.items() if parameter != "project"), path
    assert [run["id"] for run in bob.get("/api/v1/runs").json()["items"]] == [own["id"]]
    assert [project["name"] for project in bob.get("/api/v1/projects").json()["items"]] == ["b"]
    for query in (f"search={MARK}", f"search={mine['run_id']}", f"label=mark:{MARK}", "project=a"):
        assert bob.get(f"/api/v1/runs?{query}").json()["items"] == [], query
    assert mine["run_id"] in {run["id"] for run in alice.get("/api/v1/runs?project=a").json()["items"]}
    assert alice.get("/api/v1/runs?project=b").json()["items"] == []


def test_a_cursor_of_ones_own_list_shows_nothing_else_in_anothers(bob, alice, client, launch_in):
    for project in ("a", "a", "b"):
        launch_in(client, project)
    cursor = client.get("/api/v1/runs?limit=1").json()["next_cursor"]
    assert bob.get(f"/api/v1/runs?limit=5&cursor={cursor}").json()["items"] == []


def test_bodies_name_nothing_foreign(bob, client, make_user, launch_in, mine):
    dave = make_user("dave", b="launcher")
    of_b = launch_in(dave, "b")
    foreign = {**REQUESTS["runs_create"], "project": "b", "cloned_from_id": mine["run_id"]}
    missing = {**foreign, "cloned_from_id": UNKNOWN_ID}
    answers = [dave.post("/api/v1/runs", json=body) for body in (foreign, missing)]
    assert shape(answers[0], mine["run_id"]) == shape(answers[1], UNKNOWN_ID)
    assert answers[0].json()["errors"][0]["pointer"] == "/cloned_from_id"
    swept = {**REQUESTS["sweeps_create"], "project": "b", "example": None}
    answers = [dave.post("/api/v1/sweeps", json={**swept, "base_run_id": id_}) for id_ in (mine["run_id"], UNKNOWN_ID)]
    assert shape(answers[0], mine["run_id"]) == shape(answers[1], UNKNOWN_ID)
    assert answers[0].json()["errors"][0]["pointer"] == "/base_run_id"
    into_a = {**REQUESTS["runs_create"], "project": "a"}
    into_none = {**into_a, "project": "nosuch"}
    answers = [dave.post("/api/v1/runs", json=body) for body in (into_a, into_none)]
    assert shape(answers[0], "a") == shape(answers[1], "nosuch")
    cloned = dave.post(f"/api/v1/runs/{of_b['id']}/clone", json={"project": "a"})
    assert (cloned.status_code, cloned.json()["errors"][0]["pointer"]) == (422, "/project")


def test_no_gate_compares_with_what_is_foreign(make_user, client, launch_in, mine):
    """Not even through labels, by which the newest green run is found."""
    dave = make_user("dave", b="launcher")
    of_b = launch_in(dave, "b")
    gates = [{"assertion": "reward >= baseline", "baseline": id_} for id_ in (mine["run_id"], UNKNOWN_ID)]
    judged = [dave.post(f"/api/v1/runs/{of_b['id']}/gates/evaluate", json={"gates": [gate]}) for gate in gates]
    assert shape(judged[0], mine["run_id"]) == shape(judged[1], UNKNOWN_ID)
    assert judged[0].status_code == 422


def test_no_delivery_is_read_through_a_webhook_of_ones_own(make_user, carol, mine):
    carol.post(f"/api/v1/webhooks/{mine['webhook_id']}/ping")
    delivery = carol.get(f"/api/v1/webhooks/{mine['webhook_id']}/deliveries").json()["items"][0]
    erin = make_user("erin", b="admin")
    own = erin.post("/api/v1/webhooks", json={**REQUESTS["webhooks_create"], "project": "b"}).json()
    answers = [erin.get(f"/api/v1/webhooks/{own['id']}/deliveries/{id_}") for id_ in (delivery["id"], UNKNOWN_ID)]
    assert shape(answers[0], delivery["id"]) == shape(answers[1], UNKNOWN_ID)
    assert answers[0].status_code == 404


def test_a_token_of_one_project_is_good_for_no_other(app, make_user, projects, bearer, launch_in):
    erin = make_user("erin", a="admin", b="admin")
    runs = {project: launch_in(erin, project) for project in ("a", "b")}
    bound = bearer(erin, project="a")
    assert [run["id"] for run in bound.get("/api/v1/runs").json()["items"]] == [runs["a"]["id"]]
    assert bound.get(f"/api/v1/runs/{runs['b']['id']}").status_code == 404
    assert bound.post(f"/api/v1/runs/{runs['b']['id']}/stop").status_code == 404
    assert [project["name"] for project in bound.get("/api/v1/projects").json()["items"]] == ["a"]
    assert bound.get("/api/v1/projects/b/members").status_code == 404
    assert bound.put("/api/v1/projects/b/members/erin", json={"role": "viewer"}).status_code == 404
    assert launch_in(bound, None)["project"] == "a"


def test_one_who_administers_everything_does_so_in_one_project_alone_through_its_token(
    client, projects, bearer, launch_in
):
    of_b = launch_in(client, "b")
    bound = bearer(client, project="a")
    assert bound.get(f"/api/v1/runs/{of_b['id']}").status_code == 404
    assert bound.get("/api/v1/users").status_code == 403
    assert bound.post("/api/v1/login-links").status_code == 403
    assert bound.get("/api/v1/projects/a/members").status_code == 200


class Stream:
    """One request for a stream, spoken to as a server speaks to the app."""

    def __init__(self, app, browser, path):
        self.received = asyncio.Queue()
        self.gone = asyncio.Event()
        path, _, query = path.partition("?")
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"cookie", cookie.encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }
        self.task = asyncio.create_task(app(self.scope, self.receive, self.send))

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        await self.received.put(message)

    async def until(self, word):
        """All that came up to the chunk with the word."""
        text = ""
        async with asyncio.timeout(20):
            while word not in text:
                message = await self.received.get()
                text += message.get("body", b"").decode()
        return text

    async def end(self):
        self.gone.set()
        async with asyncio.timeout(20):
            await self.task


def test_the_stream_of_all_runs_holds_ones_own_alone(app, alice, bob, client, mine, launch_in):
    of_b = launch_in(client, "b")

    async def listen():
        stream = Stream(app, bob, "/api/v1/stream?runs=all&after=0")
        heard = await stream.until("event: open")
        await asyncio.to_thread(alice.patch, f"/api/v1/runs/{mine['run_id']}", json={"notes": "changed"})
        await asyncio.to_thread(client.patch, f"/api/v1/runs/{of_b['id']}", json={"notes": "changed"})
        heard += await stream.until(of_b["id"])
        await stream.end()
        return heard

    heard = asyncio.run(listen())
    assert of_b["id"] in heard
    assert mine["run_id"] not in heard
    assert bob.get(f"/api/v1/stream?runs={of_b['id']},{mine['run_id']}").status_code == 404


@pytest.mark.parametrize("change", [{"is_active": False}, None])
def test_a_stream_ends_with_its_callers_right_to_it(app, bob, client, launch_in, monkeypatch, change):
    """Who is shut out, and who loses the role in the project."""
    monkeypatch.setattr(follow, "KEEP_ALIVE_INTERVAL_S", 0.0)
    of_b = launch_in(client, "b")

    def shut_out():
        if change:
            client.patch("/api/v1/users/bob", json=change)
        else:
            client.delete("/api/v1/projects/b/members/bob")

    async def listen():
        stream = Stream(app, bob, f"/api/v1/stream?runs={of_b['id']}")
        await stream.until("event: open")
        await asyncio.to_thread(shut_out)
        async with asyncio.timeout(20):
            await stream.task

    asyncio.run(listen())
