"""The launcher with a real Ray and real jobs; Redis is down and Celery does not run, so the API does everything."""

import sys
import time
from pathlib import Path

import pytest

from backend.embedded.home import Home
from backend.embedded.ports import Ports
from backend.embedded.ray import RayService
from backend.launcher.connect import Target, connector
from backend.launcher.jobs import GOING, JobState, NotStartedError, StartingError, Submission, UnreachableError
from backend.launcher.ray_jobs import RayJobServer
from backend.settings import REPOSITORY
from tests.integration.backend.launcher.servers import running, serving
from tests.ports import free_base_port

# A worker that reports, crashes in its first attempt, and later does as it is told, or not.
WORKER = """
import os, signal, sys, time
from datetime import datetime, timezone
import httpx
from contract.telemetry.events import ASSIGNMENT_VARIABLE, WorkerAssignment

assignment = WorkerAssignment.model_validate_json(os.environ[ASSIGNMENT_VARIABLE])
seq = 0

def post(path, bearer, body=None):
    response = httpx.post(f"{assignment.api_url}/api/v1{path}", json=body, trust_env=False,
                          headers={"Authorization": f"Bearer {bearer}"})
    response.raise_for_status()
    return response.json()

token = post("/ingest/token", assignment.starter)["token"]

def send(**body):
    global seq
    seq += 1
    event = {"run_id": str(assignment.run_id), "attempt": assignment.attempt, "emitter": "driver/0", "seq": seq,
             "time": datetime.now(timezone.utc).isoformat(), "body": body}
    return post("/ingest", token, {"events": [event]})

if assignment.run_name == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
send(kind="started", host="here", versions={}, resumed_from_step=None if assignment.attempt == 1 else 3)
if assignment.run_name == "crashes" and assignment.attempt == 1:
    send(kind="checkpoint", step=3, path="/nowhere", size_bytes=1)
    print("last words", flush=True)
    os._exit(7)
while not send(kind="heartbeat", stage="train", step=4)["is_stop_requested"] or assignment.run_name == "deaf":
    time.sleep(0.1)
send(kind="finished", outcome="stopped")
"""


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("ray"))
    home.create()
    with running(RayService(home, Ports(free_base_port()), REPOSITORY)) as service:
        yield service


@pytest.fixture
def api(ray, settings, tmp_path):
    """The service; this machine's Ray is its cluster."""
    script, python = tmp_path / "worker.py", tmp_path / "python"
    script.write_text(WORKER)
    python.write_text(
        f'#!/bin/sh\n[ "$2" = workers.check_cluster ] && exec {sys.executable} "$@"\nexec {sys.executable} {script}\n'
    )
    python.chmod(0o755)
    changes = {
        "embedded_ray_dir": ray.home.ray_handshake,
        "cluster_python": str(python),
        "stop_grace_s": 1.0,
        "max_concurrent_runs": 2,
        "cluster_reward_modules": ("workers", "nowhere.x"),
    }
    with serving(settings, **changes) as app:
        yield app


@pytest.fixture
def app(api):
    return api


def wait_for(read, is_there, timeout_s=120):
    deadline = time.monotonic() + timeout_s
    while not is_there(value := read()):
        assert time.monotonic() < deadline, value
        time.sleep(0.1)
    return value


def test_a_run_crashes_resumes_and_stops_and_a_deaf_one_is_ended(client, launch):
    runs = {name: launch(name=name)["id"] for name in ("crashes", "deaf")}

    def read(name):
        return client.get(f"/api/v1/runs/{runs[name]}").json()

    wait_for(lambda: read("deaf"), lambda run: run["status"] == "running" and run["step"] == 4)
    second = wait_for(lambda: read("crashes"), lambda run: run["current_attempt"] == 2 and run["status"] == "running")
    assert second["last_checkpoint_step"] == 3
    assert [(a["number"], a["outcome"], a["resumed_from_step"]) for a in second["attempts"]] == [
        (1, "crashed", None),
        (2, None, 3),
    ]
    assert second["attempts"][0]["error"] == "The worker's process ended with exit code 7."
    lines = [line["message"] for line in client.get(f"/api/v1/runs/{runs['crashes']}/logs").json()["items"]]
    assert "last words" in lines
    for name in runs:
        assert client.post(f"/api/v1/runs/{runs[name]}/stop").status_code == 202
    for name in runs:
        stopped = wait_for(lambda: read(name), lambda run: run["is_ended"])  # noqa: B023
        assert (stopped["status"], stopped["attempts"][-1]["outcome"]) == ("stopped", "stopped")
    assert read("crashes")["status_reason"] == "Stopped at step 4."


def test_what_ray_says_about_jobs(ray, settings):
    connect = connector(settings.model_copy(update={"embedded_ray_dir": ray.home.ray_handshake}), timeout_s=100)
    with connect(Target("local", None), False) as server:
        assert server.version() == "2.60.0"
        # A node takes a moment to tell what it has.
        assert wait_for(server.resources, lambda resources: "CPU" in resources)["CPU"][1] == ray.num_cpus
        assert server.get("nothing").state is JobState.MISSING
        assert server.log_tail("nothing", 5) == []
        server.stop("nothing")
        quick = Submission("quick-1", "echo one; echo two; exit 0", {"A": "b"}, {"run": "x"})
        server.submit(quick)
        server.submit(quick)  # as after a lost answer: nothing happens
        job = wait_for(lambda: server.get("quick-1"), lambda job: job.state not in GOING)
        assert (job.state, job.exit_code) == (JobState.SUCCEEDED, 0)
        assert {"one", "two"} <= set(server.log_tail("quick-1", 10))
        assert len(server.log_tail("quick-1", 1)) == 1


def test_a_check_looks_at_every_machine(client):
    started = client.post("/api/v1/clusters/local/checks")
    assert started.status_code == 202, started.text
    ended = wait_for(lambda: client.get(started.headers["location"]).json(), lambda check: check["findings"])
    found = {finding["name"]: finding for finding in ended["findings"]}
    wrong = [finding["detail"] for finding in ended["findings"] if not finding["is_ok"]]
    assert (ended["state"], wrong) == ("failed", ["nowhere.x cannot be found: add it to the cluster's code"])
    assert (found["nodes"]["detail"], found["ray"]["detail"]) == ("1 of 1 answered", "2.60.0")
    assert found["storage_dir"]["detail"].endswith("/storage: shared by all")
    assert found["api_url"]["detail"].endswith(" answers")
    assert client.get("/api/v1/clusters/local/checks/check-nothing").status_code == 404


def test_a_stranger_is_refused_and_no_job_is_thought_dead(ray):
    with RayJobServer(ray.address, "wrong", 10) as server, pytest.raises(UnreachableError, match="refuses"):
        server.get("quick-1")


def test_an_address_where_no_ray_is_proves_nothing(tmp_path):
    with RayJobServer(f"http://127.0.0.1:{free_base_port()}", None, 1) as server, pytest.raises(UnreachableError):
        server.get("quick-1")


def test_the_handshake(settings, tmp_path: Path):
    connect = connector(settings.model_copy(update={"embedded_ray_dir": tmp_path}))
    with pytest.raises(NotStartedError):
        connect(Target("local", None), False)
    assert not (tmp_path / "ray.wanted").exists()
    with pytest.raises(StartingError, match=r"Starting Ray on this machine\."):
        connect(Target("local", None), True)
    assert (tmp_path / "ray.wanted").exists()
    (tmp_path / "ray.json").write_text('{"address": "http://127.0.0.1:1", "state": "starting", "pid": 1}')
    with pytest.raises(StartingError):
        connect(Target("local", None), False)
