"""Worker and beat as processes of their own, started as an installation starts them."""

import json
import os
import signal
import subprocess
import sys
import time
from ipaddress import ip_network

import pytest
from sqlalchemy import text

from backend.settings import REPOSITORY
from tests.integration.backend.webhooks.servers import serving


@pytest.fixture
def start(settings, tmp_path):
    processes = []

    def start(*arguments, **environment):
        values = {
            "DATABASE_URL": settings.database_url,
            "REDIS_URL": settings.redis_url,
            "FOREDECK_HOME": str(settings.home),
            "FOREDECK_EMBEDDED_RAY_DIR": str(settings.embedded_ray_dir),
            **environment,
        }
        log = tmp_path / f"{arguments[0]}.log"
        command = [sys.executable, "-m", "celery", "-A", "backend.celery_app", *arguments]
        with log.open("w") as output:
            process = subprocess.Popen(
                command, env={**os.environ, **values}, cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT
            )
        processes.append(process)
        return process, log

    yield start
    for process in processes:
        process.kill()
        process.wait()


WORKER = ("worker", "--pool", "threads", "--concurrency", "4")


def wait_for(is_there, log, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not is_there():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def test_a_nudge_after_the_commit_has_the_run_dispatched(start, launch, client, settings):
    """The reconciler would come after an hour: only the nudge can have done it."""
    process, log = start(*WORKER, FOREDECK_RECONCILE_INTERVAL_S="3600")
    run_id = launch()["id"]
    read = lambda: client.get(f"/api/v1/runs/{run_id}").json()  # noqa: E731
    wait_for(lambda: read()["status_reason"] == "Starting Ray on this machine.", log)
    assert (settings.embedded_ray_dir / "ray.wanted").exists()
    # While Ray starts, the worker nudges itself: the second try comes soon, without any reconciler.
    (settings.embedded_ray_dir / "ray.json").write_text('{"address": "http://127.0.0.1:1", "state": "ready"}')
    wait_for(lambda: "cannot be reached" in read()["status_reason"], log)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "Warning" not in log.read_text()


def test_a_nudge_after_the_commit_has_a_webhook_told(start, client, app):
    """Here, too, the clock would come after an hour."""
    _, log = start(*WORKER, FOREDECK_RECONCILE_INTERVAL_S="3600", FOREDECK_WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8")
    app.state.settings = app.state.settings.model_copy(
        update={"webhook_allowed_networks": (ip_network("127.0.0.0/8"),)}
    )
    with serving() as server:
        body = {"name": "bot", "url": f"http://127.0.0.1:{server.port}/in", "events": ["run.queued"]}
        assert client.post("/api/v1/webhooks", json=body).status_code == 201
        wait_for(lambda: "ready" in log.read_text(), log)
        client.post("/api/v1/runs", json={"name": "told", "config": {"drafter": {"kind": "none"}}})
        wait_for(lambda: server.requests, log)
        assert json.loads(server.requests[0][2])["data"]["run_name"] == "told"
    assert "whsec_" not in log.read_text()


def test_beat_has_the_worker_reconcile(start, app, database, tmp_path):
    _, log = start(*WORKER)
    beat, beat_log = start("beat", "--schedule", str(tmp_path / "schedule"), FOREDECK_RECONCILE_INTERVAL_S="0.3")

    def last(job):
        with database.transaction() as session:
            return session.scalar(text("SELECT started_at FROM periodic_job WHERE name = :job"), {"job": job})

    for job in ("reconcile", "webhooks"):
        wait_for(lambda job=job: last(job) is not None, log)
        first = last(job)
        wait_for(lambda job=job, first=first: last(job) > first, log)
    beat.send_signal(signal.SIGTERM)
    assert beat.wait(30) == 0
    assert "Warning" not in beat_log.read_text()
