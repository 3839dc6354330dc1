"""The service over HTTP, and a worker that only reports: runs take a second and measure what their configuration says.

One service for all tests of the folder: each looks only at runs of its own.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import uvicorn
from psycopg import sql
from sqlalchemy import select

from backend import bootstrap
from backend.auth.service import issue_user_token, issue_worker_token
from backend.db import Database
from backend.embedded.postgres import PostgresServer
from backend.embedded.valkey import ValkeyServer
from backend.main import create_app
from backend.models import Attempt, Run
from backend.settings import Settings
from contract.telemetry.events import Body, Event, Finished, Heartbeat, IngestRequest, Metrics, Started
from foredeck import Foredeck
from tests.ports import free_base_port

REPOSITORY = Path(__file__).parents[3]
NUM_STEPS = 20
CONFIG = f"name: smoke\nconfig: {{drafter: {{kind: eagle3}}, grpo: {{num_steps: {NUM_STEPS}}}}}\n"
ACCEPTANCE_LENGTHS = {"eagle3": 3.0, "ngram": 1.2}


@dataclass
class Service:
    """Where it is, and a token that may launch runs there."""

    url: str
    token: str
    admin_token: str
    database: Database

    @property
    def environment(self) -> dict[str, str]:
        """That of a CI job, apart from what its system adds."""
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        python_path = {"PYTHONPATH": str(REPOSITORY)}
        return kept | python_path | {"FOREDECK_URL": self.url, "FOREDECK_TOKEN": self.token, "FOREDECK_PATIENCE_S": "5"}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "cli.main", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(argv, env=self.environment | environment, **pipes)

    def foredeck(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The command, to its end."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def client(self) -> Foredeck:
        return Foredeck(self.url, self.token)


@dataclass
class Worker:
    """Carries out every run that is dispatched, by reporting. A run's label `ends` says how: `succeeded` (when there is
    none), `failed`, `never` until it is asked to stop, or `silent`, which no worker ever takes up."""

    service: Service
    wake: threading.Event = field(default_factory=threading.Event)
    is_over: bool = False
    taken: dict[UUID, Future[None]] = field(default_factory=dict)

    def work(self) -> None:
        with (
            httpx.Client(base_url=self.service.url, timeout=30, trust_env=False) as http,
            ThreadPoolExecutor(max_workers=16) as pool,
        ):
            while not self.is_over:
                for run_id, config, ends in self._dispatched():
                    self.taken[run_id] = pool.submit(self._carry_out, http, run_id, config, ends)
                self.wake.wait(0.05)
        for future in self.taken.values():
            future.result()

    def _dispatched(self) -> list[tuple[UUID, dict[str, Any], str]]:
        with self.service.database.transaction() as session:
            runs = session.scalars(select(Run).join(Attempt).where(Run.status == "dispatching")).all()
            found = [(run.id, run.config, run.labels.get("ends", "succeeded")) for run in runs]
        return [each for each in found if each[0] not in self.taken and each[2] != "silent"]

    def _carry_out(self, http: httpx.Client, run_id: UUID, config: dict[str, Any], ends: str) -> None:
        with self.service.database.transaction() as session:
            headers = {"Authorization": f"Bearer {issue_worker_token(session, run_id)}"}
        bodies: list[Body] = [
            Started(host="here", versions={}),
            Heartbeat(stage="generation", step=1),
            *(Metrics(step=step, values=_measured(config, step)) for step in range(1, NUM_STEPS + 1)),
        ]
        last: dict[str, Body] = {
            "succeeded": Finished(outcome="succeeded"),
            "failed": Finished(outcome="failed", error="The loss is not a number."),
        }
        if ends in last:
            bodies.append(last[ends])
        asked_to_stop = self._send(http, headers, run_id, bodies, 1)
        number = len(bodies) + 1
        while ends == "never" and not asked_to_stop and not self.is_over:
            self.wake.wait(0.05)
            asked_to_stop = self._send(http, headers, run_id, [Heartbeat(stage="generation", step=1)], number)
            number += 1
        if asked_to_stop and ends == "never":
            self._send(http, headers, run_id, [Finished(outcome="stopped")], number)

    def _send(self, http: httpx.Client, headers: dict[str, str], run_id: UUID, bodies: list[Body], first: int) -> bool:
        events = [
            Event(run_id=run_id, attempt=1, emitter="driver/0", seq=number, time=datetime.now(UTC), body=body)
            for number, body in enumerate(bodies, first)
        ]
        content = IngestRequest(events=events).model_dump_json()
        answer = http.post("/api/v1/ingest", content=content, headers=headers | {"Content-Type": "application/json"})
        return bool(answer.raise_for_status().json()["is_stop_requested"])


def _measured(config: dict[str, Any], step: int) -> dict[str, float]:
    """Numbers with a little of the unrest that real ones have."""
    unrest = 0.01 * (step * 7 % 5 - 2)
    length = ACCEPTANCE_LENGTHS[config["drafter"]["kind"]]
    return {
        "rollout/acceptance_length_tokens": length + unrest,
        "reward/train_mean": 0.6 + unrest,
        "speedup/generation_ratio": 0.6 * length + unrest,
    }


@pytest.fixture(scope="module")
def database_url(postgres_server: PostgresServer, template_database: str) -> str:
    name = f"ci_{uuid4().hex}"
    with psycopg.connect(postgres_server.conninfo(), autocommit=True) as connection:
        copied = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        connection.execute(copied.format(sql.Identifier(name), sql.Identifier(template_database)))
    return postgres_server.url_of(name)


@pytest.fixture(scope="module")
def service(
    database_url: str,
    valkey_server: ValkeyServer,
    redis_databases: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    port = free_base_port()
    settings = Settings.model_validate(
        {
            "DATABASE_URL": database_url,
            "REDIS_URL": valkey_server.url_of(next(redis_databases)),
            "FOREDECK_HOME": str(tmp_path_factory.mktemp("home")),
            "FOREDECK_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "RAY_ADDRESS": "http://127.0.0.1:1",
            "FOREDECK_MAX_CONCURRENT_RUNS": "100",
            "FOREDECK_RECONCILE_INTERVAL_S": "0.2",
        }
    )
    app = create_app(settings)
    with app.state.database.transaction() as session:
        admin = bootstrap.ensure(session, settings)
        tokens = [issue_user_token(session, admin, scope, [scope]) for scope in ("write", "admin")]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    service = Service(settings.public_url, *tokens, Database(settings))
    worker = Worker(service)
    threads = [threading.Thread(target=server.run), threading.Thread(target=worker.work)]
    for thread in threads:
        thread.start()
    yield service
    worker.is_over = True
    worker.wake.set()
    threads[1].join()
    server.should_exit = True
    threads[0].join()
    service.database.close()


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A run configuration."""
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG)
    return str(path)
