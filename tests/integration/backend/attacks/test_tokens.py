"""Tokens of workers report to their own run, while it goes on, and do nothing else; secrets are nowhere to be read."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import psutil
import pytest

from backend.auth import secrets
from backend.auth.guard import PUBLIC
from backend.auth.service import issue_worker_token
from backend.auth.workers import repository
from backend.auth.workers import service as workers
from backend.main import create_app
from backend.settings import Settings
from contract.telemetry.events import WorkerAssignment

EVENT = {"schema_version": 1, "attempt": 1, "emitter": "driver/0", "seq": 1}


def report(run_id):
    body = {"kind": "log", "level": "info", "message": "hello"}
    return {"events": [EVENT | {"run_id": run_id, "time": datetime.now(UTC).isoformat(), "body": body}]}


@pytest.fixture
def worker(database, make_client):
    """A client with the token of a run's worker."""

    def make(run_id):
        with database.transaction() as session:
            token = issue_worker_token(session, run_id)
        client = make_client()
        client.headers["Authorization"] = f"Bearer {token}"
        return client

    return make


@pytest.fixture
def starter(database, make_client):
    """A client with the starter of a run's first attempt."""

    def make(run_id):
        with database.transaction() as session:
            token = workers.issue_starter(session, run_id, 1)
        client = make_client()
        client.headers["Authorization"] = f"Bearer {token}"
        return client

    return make


@pytest.mark.parametrize(("kind", "own"), [("worker", "/api/v1/ingest"), ("starter", "/api/v1/ingest/token")])
def test_a_workers_token_opens_nothing_but_its_runs_ingest(app, launch, kind, own, request):
    """And its starter nothing but the exchange for one."""
    mine, other = launch()["id"], launch()["id"]
    client = request.getfixturevalue(kind)(mine)
    assert client.post("/api/v1/ingest", json=report(other)).status_code == 403
    for path, operations in app.openapi()["paths"].items():
        for method in operations:
            if (method.upper(), path) in PUBLIC or path == own:
                continue
            concrete = path.replace("{run_id}", mine)
            status = client.request(method.upper(), concrete.replace("{", "").replace("}", "")).status_code
            assert status in {403, 404, 422}, (method, path, status)
            if "{" not in concrete:
                assert status == 403, (method, path)


def test_a_workers_token_ends_with_its_run(launch, worker, client, database):
    """Once what it has left to deliver has had its time: FOREDECK_DRAIN_S."""
    run_id = launch()["id"]
    reporter = worker(run_id)
    client.post(f"/api/v1/runs/{run_id}/stop").raise_for_status()
    with database.transaction() as session:
        repository.delete_over(session, ended_for_s=0)
    assert reporter.post("/api/v1/ingest", json=report(run_id)).status_code == 401


def test_errors_about_an_assignment_do_not_show_its_token():
    with pytest.raises(ValueError, match="WorkerAssignment") as error:
        WorkerAssignment.model_validate({"starter": "fdk_0a1b2c3d_hunter2", "attempt": 0})
    assert "hunter2" not in str(error.value)
    fields = dict.fromkeys(WorkerAssignment.model_fields, "x") | {"starter": "hunter2"}
    assert "hunter2" not in repr(WorkerAssignment.model_construct(**fields))


def test_no_process_shows_a_password(postgres_server, valkey_server, service):
    """In the arguments of processes, which all users of a machine may read."""
    passwords = [url.split("@")[0].rsplit(":", 1)[1] for url in (postgres_server.url_of("x"), valkey_server.url_of(1))]
    arguments = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert all(len(password) > 20 for password in passwords)
    for secret in (*passwords, service.token):
        assert [line for line in arguments if secret in line] == []


def test_the_log_shows_no_secret(service):
    """Whatever is asked, with whatever credentials."""
    password = service.settings.database_url.split("@")[0].rsplit(":", 1)[1]
    code = "Jx0c" * 11
    service.ask("GET", f"/api/v1/runs?search={service.token}")
    service.ask("GET", f"/api/v1/clusters/{service.token}")
    service.ask("POST", "/api/v1/session", b'{"code": "%s"}' % code.encode())
    service.ask("GET", "/api/v1/runs", Cookie="foredeck_session=hunter2hunter2")
    log = service.log.read_text()
    assert '"path": "/api/v1/clusters/' in log
    for secret in (service.token.split("_", 2)[2], password, code, "hunter2"):
        assert secret not in log


def test_settings_show_no_secret():
    given = {
        "DATABASE_URL": "postgresql://me:hunter2@h/x",
        "REDIS_URL": "redis://:hunter2@h",
        "FOREDECK_RAY_TOKEN": "hunter2",
    }
    settings = Settings.model_validate(given)
    assert "hunter2" not in repr(settings) + str(settings)
    assert "hunter2" not in repr(create_app(settings).state.database.engine.url)


def test_a_refused_database_address_is_not_shown():
    environment = os.environ | {"DATABASE_URL": "mysql://me:hunter2@h/x"}
    command = ["-c", "from backend.main import create_app; create_app()"]
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DATABASE_URL" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def test_secrets_are_compared_in_constant_time(monkeypatch):
    """Every comparison of tokens, sessions and CSRF tokens goes through hmac.compare_digest."""
    compared = []
    monkeypatch.setattr(
        secrets.hmac, "compare_digest", lambda left, right: compared.append((left, right)) or left == right
    )
    assert secrets.is_equal("a", "a")
    assert not secrets.is_equal("a", "b")
    assert not secrets.is_equal("a\ud800", "b\xff")
    assert len(compared) == 3
