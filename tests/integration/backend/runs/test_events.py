"""What webhooks are told of runs, from the order to the end."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import select

from backend.models import Project, Webhook, WebhookDelivery
from backend.runs import attempts
from backend.runs.repository import get_locked
from backend.runs.state import Status, transition
from backend.telemetry.ingest import ingest
from backend.webhooks.events import EVENT_TYPES
from contract.telemetry.alarms import AlarmName
from contract.telemetry.events import Alarm, Event, Finished, IngestRequest, Started

STARTED = Started(host="h", versions={})


@pytest.fixture
def told(database):
    """[(type, data)] of what a webhook that listens to everything is promised, oldest first."""
    with database.transaction() as session:
        project_id = session.scalars(select(Project.id)).one()
        session.add(
            Webhook(project_id=project_id, name="x", url="https://hook.example/", events=list(EVENT_TYPES), secret="")
        )

    def read():
        with database.transaction() as session:
            rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.created_at)).all()
            return [(row.type, json.loads(row.body)["data"]) for row in rows]

    return read


@pytest.fixture
def change(database):
    """change(run_id, function): calls it with the locked run in a transaction."""

    def change(run_id, function):
        with database.transaction() as session:
            run = get_locked(session, UUID(run_id))
            function(session, run)

    return change


@pytest.fixture
def report(database):
    """report(run_id, body, ...): a batch of a worker's first attempt; further ones go on."""
    seqs: dict[str, int] = {}

    def report(run_id, *bodies, attempt=1):
        events = []
        for body in bodies:
            seqs[f"{run_id}{attempt}"] = seq = seqs.get(f"{run_id}{attempt}", 0) + 1
            values = {"run_id": run_id, "attempt": attempt, "emitter": "driver/0", "seq": seq}
            events.append(Event(**values, time=datetime.now(UTC), body=body))
        with database.transaction() as session:
            ingest(session, IngestRequest(events=events), UUID(run_id))

    return report


def begin(session, run):
    attempts.begin(session, run, "Starting.")


def to(status):
    return lambda session, run: transition(session, run, status, f"It is {status}.")


def test_a_run_tells_its_life(told, launch, change, report):
    run = launch(name="eagle3", labels={"branch": "main"})
    change(run["id"], begin)
    report(run["id"], STARTED)
    change(run["id"], to(Status.LOST))
    change(run["id"], to(Status.RUNNING))
    report(run["id"], Finished(outcome="failed", error="CUDA out of memory", is_retryable=False))
    types = [event_type for event_type, _ in told()]
    assert types == ["run.queued", "run.started", "run.lost", "run.resumed", "run.failed"]
    first, *_, last = [data for _, data in told()]
    assert (first["status"], first["run_id"], first["attempt"]) == ("queued", run["id"], 0)
    assert (last["status"], last["status_reason"]) == ("failed", "CUDA out of memory")
    assert (last["run_name"], last["labels"], last["project"]) == ("eagle3", {"branch": "main"}, "default")
    assert last["url"] == f"http://127.0.0.1:8600/runs/{run['id']}"


def test_alarms_are_told_when_they_change(told, launch, change, report):
    run_id = launch()["id"]
    change(run_id, begin)
    drift = {"name": AlarmName.DISTRIBUTION_DRIFT, "message": "distance 0.2"}
    report(run_id, STARTED, Alarm(step=3, is_raised=True, **drift))
    report(run_id, Alarm(step=4, is_raised=True, **drift))
    report(run_id, Alarm(step=9, is_raised=False, **drift))
    alarms = [(event_type, data["alarm"]) for event_type, data in told() if event_type.startswith("alarm.")]
    assert [event_type for event_type, _ in alarms] == ["alarm.raised", "alarm.cleared"]
    raised, cleared = [alarm for _, alarm in alarms]
    assert (raised["name"], raised["step"], raised["ending"]) == ("distribution_drift", 3, None)
    assert (cleared["step"], cleared["ending"]) == (3, "cleared")


def test_a_stopped_run_tells_it_once(told, launch, client):
    run_id = launch()["id"]
    for _ in range(2):
        client.post(f"/api/v1/runs/{run_id}/stop")
    assert [event_type for event_type, _ in told()] == ["run.queued", "run.stopped"]
