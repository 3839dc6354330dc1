"""A run's attempts, their starters, and requests with whatever token."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.auth.workers import repository
from backend.auth.workers.service import issue_starter
from backend.runs import attempts
from backend.runs import repository as runs

EVENT = {"schema_version": 1, "emitter": "driver/0", "seq": 1}
DRAIN_S = 3600


class Wire:
    """Requests with a token in the place of a caller."""

    def __init__(self, app):
        self.http = TestClient(app)

    def post(self, path, token, **fields):
        return self.http.post(f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"}, **fields)

    def exchange(self, starter):
        """(status, token)."""
        response = self.post("/ingest/token", starter)
        return response.status_code, response.json().get("token")

    def report(self, token, run_id, attempt=1):
        return self.send(token, run_id, attempt).status_code

    def send(self, token, run_id, attempt=1):
        body = {"kind": "log", "level": "info", "message": "hello"}
        event = {"run_id": run_id, "attempt": attempt, "time": datetime.now(UTC).isoformat(), "body": body}
        return self.post("/ingest", token, json={"events": [EVENT | event]})


@pytest.fixture
def wire(app):
    return Wire(app)


@pytest.fixture
def run_id(launch):
    return launch()["id"]


@pytest.fixture
def begin(database):
    """The next attempt of a run, as a dispatch begins it; its starter."""

    def begin(run_id):
        with database.transaction() as session:
            run = runs.get_locked(session, UUID(run_id))
            attempts.begin(session, run, "Begins.")
            repository.retire(session, run.id, DRAIN_S)
            return issue_starter(session, run.id, run.current_attempt)

    return begin


@pytest.fixture
def sql(database):
    def sql(statement, **parameters):
        with database.transaction() as session:
            result = session.execute(text(statement), parameters)
            return result.all() if result.returns_rows else result.rowcount

    return sql


@pytest.fixture
def audited(client):
    """(action, detail) of what the audit log says of workers' tokens, the oldest first."""

    def audited():
        items = client.get("/api/v1/audit", params={"action": "worker_token", "limit": 200}).json()["items"]
        return [(item["action"].partition(".")[2], item["detail"]) for item in reversed(items)]

    return audited


@pytest.fixture
def warnings(client):
    def warnings(run_id):
        items = client.get(f"/api/v1/runs/{run_id}/logs", params={"level": "warning"}).json()["items"]
        return [item["message"] for item in items]

    return warnings
