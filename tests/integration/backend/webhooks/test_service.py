import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from backend.models import Project
from backend.webhooks import service


@pytest.fixture
def emit(database, project_id):
    def emit(event_type="run.failed", data=None, project=None):
        with database.transaction() as session:
            service.emit(session, project or project_id, event_type, data or {})

    return emit


def test_an_event_goes_to_those_of_its_project_who_listen(database, emit, insert_webhook, deliveries):
    with database.transaction() as session:
        other = Project(name="other")
        session.add(other)
        session.flush()
        other_id = other.id
    wanted = {insert_webhook(events=["run.lost", "run.failed"]), insert_webhook()}
    insert_webhook(events=["run.lost"])
    insert_webhook(is_enabled=False)
    insert_webhook(project_id=other_id)
    emit()
    assert {row.webhook_id for row in deliveries()} == wanted
    assert {(row.state, row.num_tries, row.type) for row in deliveries()} == {("pending", 0, "run.failed")}


def test_the_body_says_what_happened_and_when(emit, insert_webhook, deliveries):
    insert_webhook()
    run_id = UUID(int=7)
    before = datetime.now(UTC)
    emit(data={"run_id": run_id, "name": "größer <b>", "at": datetime(2030, 1, 31, tzinfo=UTC)})
    (row,) = deliveries()
    body = json.loads(row.body)
    assert body.keys() == {"type", "timestamp", "data"}
    assert body["type"] == "run.failed"
    assert body["data"] == {"run_id": str(run_id), "name": "größer <b>", "at": "2030-01-31T00:00:00.000Z"}
    assert abs((datetime.fromisoformat(body["timestamp"]) - before).total_seconds()) < 60
    assert row.body.isascii()


def test_what_is_rolled_back_is_not_told(database, project_id, insert_webhook, deliveries):
    insert_webhook()
    with database.transaction() as session:
        service.emit(session, project_id, "run.failed", {})
        session.rollback()
    assert deliveries() == []
