import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select, text

from backend.auth.service import issue_user_token
from backend.models import User

CLUSTER = {
    "name": "h100-east",
    "address": "http://127.0.0.1:1",
    "python": "/opt/foredeck/bin/python",
    "storage_dir": "/mnt/shared",
    "api_url": "https://foredeck.example.org",
    "max_concurrent_runs": 4,
}


@pytest.fixture
def ray():
    """Answers as Ray's dashboard does (recorded from Ray 2.60), whatever it is asked."""
    answers = {
        "/api/version": {"version": "4", "ray_version": "2.60.0", "ray_commit": "x", "session_name": "s"},
        "/api/cluster_status": {
            "result": True,
            "data": {"clusterStatus": {"loadMetricsReport": {"usage": {"CPU": [1.0, 8.0], "node:10.0.0.1": [0, 1]}}}},
        },
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


CODE = {
    "kind": "runtime_env",
    "working_dir": "s3://builds/foredeck-0.1.0.zip",
    "py_modules": ["https://builds.example.org/our_rewards.whl"],
    "pip": ["torch==2.11.0", "vllm[flashinfer]==0.33.0", "ours @ https://builds.example.org/ours.whl"],
}


def test_the_local_cluster_is_there_and_not_started(client):
    (cluster,) = client.get("/api/v1/clusters").json()
    assert (cluster["name"], cluster["is_embedded"], cluster["num_live_runs"]) == ("local", True, 0)
    assert cluster["reachability"]["state"] == "not_started"
    assert cluster["resources"] is None


def test_a_registered_cluster_takes_runs(client, launch):
    response = client.post("/api/v1/clusters", json=CLUSTER)
    assert response.status_code == 201
    assert response.headers["location"] == "/api/v1/clusters/h100-east"
    assert launch(cluster="h100-east")["cluster"] == "h100-east"
    registered = response.json()
    assert (registered["code"], registered["reward_modules"]) == ({"kind": "installed"}, [])
    assert "no answer from http://127.0.0.1:1" in registered["reachability"]["detail"]
    cluster = client.get("/api/v1/clusters/h100-east").json()
    assert {key: cluster[key] for key in CLUSTER} == CLUSTER
    assert (cluster["num_queued_runs"], cluster["reachability"]["state"]) == (1, "unreachable")
    assert "no answer from http://127.0.0.1:1" in cluster["reachability"]["detail"]


def test_a_cluster_that_answers_shows_what_it_has(client, ray):
    client.post("/api/v1/clusters", json={**CLUSTER, "address": ray})
    cluster = client.get("/api/v1/clusters/h100-east").json()
    assert cluster["reachability"] == {"state": "reachable", "detail": "Ray 2.60.0 answers.", "ray_version": "2.60.0"}
    assert cluster["resources"] == {"CPU": {"used": 1.0, "total": 8.0}}


def test_a_name_is_taken_once(client):
    client.post("/api/v1/clusters", json=CLUSTER)
    response = client.post("/api/v1/clusters", json=CLUSTER)
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (409, "/name")


def test_only_an_unused_cluster_can_be_removed(client, launch):
    client.post("/api/v1/clusters", json=CLUSTER)
    run = launch(cluster="h100-east")
    client.post(f"/api/v1/runs/{run['id']}/stop")
    refused = client.delete("/api/v1/clusters/h100-east")
    assert (refused.status_code, "1 runs belong to it" in refused.json()["detail"]) == (409, True)
    client.post("/api/v1/clusters", json={**CLUSTER, "name": "unused"})
    assert client.delete("/api/v1/clusters/unused").status_code == 204
    assert client.get("/api/v1/clusters/unused").status_code == 404
    assert client.delete("/api/v1/clusters/unused").status_code == 404
    assert client.delete("/api/v1/clusters/local").status_code == 409


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../x"),
        ("name", "Upper"),
        ("address", "ray://head:10001"),
        ("address", "http://user:pw@head:8265"),
        ("address", "file:///etc/passwd"),
        ("address", "http://head:abc"),
        ("address", "http://head:99999"),
        ("address", "http://:8265"),
        ("address", "http://[::1"),
        ("address", "http://xn--:8265"),
        ("address", "http://head:8265/?a=b"),
        ("api_url", "http://head:0"),
        ("python", "python; rm -rf /"),
        ("python", "$(reboot)"),
        ("storage_dir", "relative/path"),
        ("max_concurrent_runs", 0),
        ("max_concurrent_runs", 10**12),
    ],
)
def test_what_could_do_harm_is_refused(client, field, value):
    response = client.post("/api/v1/clusters", json={**CLUSTER, field: value})
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [f"/{field}"]


@pytest.mark.parametrize(
    ("code", "pointer"),
    [
        ({"kind": "conda"}, "/code"),
        ({"kind": "runtime_env"}, "/code"),
        ({"kind": "runtime_env", "pip": ["torch>=2"]}, "/code/pip/0"),
        ({"kind": "runtime_env", "pip": ["torch==2.11.0", "--index-url=http://evil"]}, "/code/pip/1"),
        ({"kind": "runtime_env", "pip": ["torch==2.11.0; echo"]}, "/code/pip/0"),
        ({"kind": "runtime_env", "working_dir": "/home/me/foredeck"}, "/code/working_dir"),
        ({"kind": "runtime_env", "working_dir": "file:///etc/passwd.zip"}, "/code/working_dir"),
        ({"kind": "runtime_env", "working_dir": "https://me:secret@host/x.zip"}, "/code/working_dir"),
        ({"kind": "runtime_env", "working_dir": "https://host/x.tar"}, "/code/working_dir"),
        ({"kind": "container", "image": "foredeck:latest"}, "/code/image"),
        ({"kind": "container", "image": "foredeck"}, "/code/image"),
        ({"kind": "container", "image": "foredeck:1 --privileged"}, "/code/image"),
        ({"kind": "container", "image": "foredeck:1", "options": ["--device=gpu; rm"]}, "/code/options/0"),
        ({"kind": "container", "image": "foredeck:1", "options": ["--device=$(id)"]}, "/code/options/0"),
        ({"kind": "container", "image": "foredeck:1", "options": ["--shm-size=16g", "other:1"]}, "/code/options/1"),
    ],
)
def test_code_that_is_not_pinned_or_could_do_harm_is_refused(client, code, pointer):
    response = client.post("/api/v1/clusters", json={**CLUSTER, "python": "python", "code": code})
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


@pytest.mark.parametrize("module", ["os; rm", "our-rewards", "ours.", ""])
def test_only_names_of_modules_are_allowed_for_rewards(client, module):
    response = client.post("/api/v1/clusters", json={**CLUSTER, "reward_modules": ["ours.math", module]})
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == ["/reward_modules/1"]


def test_code_that_brings_an_interpreter_takes_no_other(client):
    wrong = client.post("/api/v1/clusters", json={**CLUSTER, "code": CODE})
    assert (wrong.status_code, "must be `python` with code of pip" in wrong.text) == (422, True)
    client.post("/api/v1/clusters", json={**CLUSTER, "python": "python", "code": CODE})
    path = "/api/v1/clusters/h100-east"
    assert client.get(path).json()["code"] == CODE
    wrong = client.patch(path, json={"python": "/usr/bin/python3"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/python")
    changes = {"python": "/usr/bin/python3", "code": {"kind": "installed"}, "reward_modules": ["our_rewards.math"]}
    changed = client.patch(path, json=changes)
    assert (changed.status_code, {key: changed.json()[key] for key in changes}) == (200, changes)


def test_a_cluster_that_does_not_answer_cannot_be_checked(client):
    client.post("/api/v1/clusters", json=CLUSTER)
    response = client.post("/api/v1/clusters/h100-east/checks")
    assert (response.status_code, "no answer from" in response.json()["detail"]) == (503, True)
    assert client.post("/api/v1/clusters/nowhere/checks").status_code == 404
    assert client.get("/api/v1/clusters/h100-east/checks/check-1").status_code == 503


def test_a_wrong_address_can_be_corrected(client, launch, ray, database):
    client.post("/api/v1/clusters", json=CLUSTER)
    launch(cluster="h100-east")
    with database.transaction() as session:
        session.execute(text("UPDATE outbox SET due_at = now() + interval '1 hour'"))
    response = client.patch("/api/v1/clusters/h100-east", json={"address": ray, "max_concurrent_runs": 9})
    assert response.status_code == 200, response.text
    cluster = client.get("/api/v1/clusters/h100-east").json()
    changed = CLUSTER | {"address": ray, "max_concurrent_runs": 9}
    assert ({key: cluster[key] for key in CLUSTER}, cluster["reachability"]["state"]) == (changed, "reachable")
    with database.transaction() as session:  # there may be a place for it now
        assert session.scalar(text("SELECT due_at <= now() FROM outbox"))


def test_what_cannot_be_corrected(client, make_client):
    client.post("/api/v1/clusters", json=CLUSTER)
    path = "/api/v1/clusters/h100-east"
    wrong = client.patch(path, json={"address": "http://head:99999"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/address")
    assert client.patch(path, json={"name": "other"}).status_code == 422
    assert client.patch("/api/v1/clusters/nowhere", json={}).status_code == 404
    assert client.patch("/api/v1/clusters/local", json={"max_concurrent_runs": 2}).status_code == 409
    assert make_client("write").patch(path, json={}).status_code == 403


def test_who_uses_a_cluster_and_who_waits(client, make_client, launch, database):
    for project in ("vision", "speech"):
        assert client.post("/api/v1/projects", json={"name": project}).status_code == 201
    client.post("/api/v1/users", json={"name": "ada"})
    client.put("/api/v1/projects/vision/members/ada", json={"role": "launcher"})
    with database.transaction() as session:
        ada = session.scalars(select(User).where(User.name == "ada")).one()
        token = issue_user_token(session, ada, "own", ["read", "write"])
    browser = make_client()
    browser.headers["Authorization"] = f"Bearer {token}"
    own = browser.post("/api/v1/runs", json={"name": "x", "config": {"drafter": {"kind": "none"}}, "project": "vision"})
    runs = [own.json(), *(launch(project=project) for project in ("vision", "vision", "speech", "speech"))]
    with database.transaction() as session:
        for run, status in zip(runs, ("running", "dispatching", "queued", "queued", "succeeded"), strict=True):
            session.execute(text("UPDATE run SET status = :status WHERE id = :id"), {"status": status, "id": run["id"]})
    all_of_it = client.get("/api/v1/clusters/local/shares").json()
    assert [tuple(share.values()) for share in all_of_it["users"]] == [("admin", 1, 2), ("ada", 1, 0)]
    assert [tuple(share.values()) for share in all_of_it["projects"]] == [("vision", 2, 1), ("speech", 0, 1)]
    seen = browser.get("/api/v1/clusters/local/shares").json()
    assert [tuple(share.values()) for share in seen["users"]] == [("admin", 1, 1), ("ada", 1, 0)]
    assert [tuple(share.values()) for share in seen["projects"]] == [("vision", 2, 1)]
    assert client.get("/api/v1/clusters/none/shares").status_code == 404
