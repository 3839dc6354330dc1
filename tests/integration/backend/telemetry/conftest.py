"""Runs in a fresh database, without the HTTP service around it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from backend.db import Database
from backend.models import Attempt, Cluster, Project, Run
from backend.settings import Settings
from contract.telemetry.events import Body, Event, IngestRequest, Metrics

MakeRun = Callable[..., UUID]
MakeEvent = Callable[..., Event]


@pytest.fixture
def database(database_url: str, redis_url: str) -> Iterator[Database]:
    database = Database(Settings(DATABASE_URL=database_url, REDIS_URL=redis_url))
    yield database
    database.close()


@pytest.fixture
def make_run(database: Database) -> MakeRun:
    """make_run(num_attempts=1): the id of a running run with that many attempts, the last being current."""

    def make(num_attempts: int = 1) -> UUID:
        run_id = uuid4()
        with database.transaction() as session:
            cluster = Cluster(name=f"c-{run_id}", python="python", storage_dir="/s", api_url="http://127.0.0.1:1")
            run = Run(
                id=run_id, name="r", status="running", config={}, config_sha256="0", num_steps=100, cluster=cluster
            )
            run.project = session.scalars(select(Project)).one()
            run.current_attempt = num_attempts
            numbers = range(1, num_attempts + 1)
            attempts = [
                Attempt(number=number, submission_id=f"{run_id}-{number}", config={}, config_sha256="0")
                for number in numbers
            ]
            run.attempts = attempts
            session.add(run)
        return run_id

    return make


@pytest.fixture
def make_event() -> MakeEvent:
    """make_event(run_id, seq, body, attempt=1, emitter="driver/0")."""

    def make(run_id: UUID, seq: int, body: Body, attempt: int = 1, emitter: str = "driver/0") -> Event:
        return Event(run_id=run_id, attempt=attempt, emitter=emitter, seq=seq, time=datetime.now(UTC), body=body)

    return make


@pytest.fixture
def send(database: Database) -> Callable[..., dict[tuple[int, str], int]]:
    """send(events): ingests them in a transaction; up to where each (attempt, emitter) is acknowledged."""
    from backend.telemetry.ingest import ingest

    def send(events: list[Event]) -> dict[tuple[int, str], int]:
        with database.transaction() as session:
            response = ingest(session, IngestRequest(events=events), events[0].run_id)
        return {(mark.attempt, mark.emitter): mark.seq for mark in response.acknowledged}

    return send


@pytest.fixture
def send_metrics(
    send: Callable[..., object], make_event: MakeEvent
) -> Callable[[UUID, dict[int, dict[str, float]], int], None]:
    """send_metrics(run_id, {step: {name: value}}, attempt=1), with seq from 1."""

    def send_metrics(run_id: UUID, values: dict[int, dict[str, float]], attempt: int = 1) -> None:
        events = [
            make_event(run_id, seq, Metrics(step=step, values=named), attempt)
            for seq, (step, named) in enumerate(values.items(), 1)
        ]
        for start in range(0, len(events), 500):
            send(events[start : start + 500])

    return send_metrics
