"""How fast telemetry comes in, durably, and how soon it is seen: `python -m benchmarks.ingest [--json]`.

Everything is as in production: PostgreSQL with fsync, Valkey, and uvicorn in a process of its own, on this machine. A
point counts once its batch has been acknowledged, which is after the commit. The sender shares the machine's cores.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import httpx
from alembic import command
from alembic.config import Config
from sqlalchemy import select, text

from backend.auth import service as auth
from backend.db import Database
from backend.embedded.binaries import system_dir_for
from backend.embedded.ports import free_port
from backend.embedded.postgres import PostgresServer
from backend.embedded.valkey import ValkeyServer
from backend.models import Attempt, Cluster, Project, Run, User
from backend.settings import Settings
from contract.telemetry.events import Event, IngestRequest, Metrics
from contract.telemetry.metrics import METRICS

REPOSITORY = Path(__file__).parent.parent
JSON = {"Content-Type": "application/json"}
NAMES = [name for name, metric in METRICS.items() if metric.axis == "step"][:50]


@contextmanager
def services() -> Iterator[tuple[str, Database]]:
    """(base URL of the API, its database), started and thrown away."""
    home = Path(tempfile.mkdtemp(prefix="fdk-bench-"))
    postgres, valkey = PostgresServer(home, free_port()), ValkeyServer(home, free_port())
    postgres_process, valkey_process = postgres.start(), valkey.start()
    environment = {"DATABASE_URL": postgres.url, "REDIS_URL": valkey.url, "FOREDECK_HOME": str(home)}
    os.environ.update(environment)
    command.upgrade(Config(REPOSITORY / "alembic.ini"), "head")
    port = free_port()
    arguments = [sys.executable, "-m", "uvicorn", "backend.main:app", "--port", str(port), "--no-access-log"]
    server = subprocess.Popen(arguments, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
    database = Database(Settings.model_validate(environment))
    try:
        url = f"http://127.0.0.1:{port}/api/v1"
        _wait_for(f"{url}/health", server)
        yield url, database
    finally:
        database.close()
        server.terminate()
        server.wait()
        postgres.stop(postgres_process)
        valkey.stop(valkey_process)
        shutil.rmtree(home)
        shutil.rmtree(system_dir_for(home), ignore_errors=True)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            httpx.get(url).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the API did not start")


def make_run(database: Database) -> tuple[UUID, str]:
    """(id, worker's token) of a running run."""
    run_id = uuid4()
    with database.transaction() as session:
        cluster = Cluster(name=f"c-{run_id}", python="python", storage_dir="/s", api_url="http://127.0.0.1:1")
        run = Run(id=run_id, name="r", status="running", config={}, config_sha256="0", num_steps=1, cluster=cluster)
        run.project = session.scalars(select(Project)).one()
        run.current_attempt = 1
        run.attempts = [Attempt(number=1, submission_id=f"{run_id}-1", config={}, config_sha256="0")]
        session.add(run)
        session.flush()
        return run_id, auth.issue_worker_token(session, run_id)


def make_reader(database: Database) -> dict[str, str]:
    with database.transaction() as session:
        user = User(name="benchmark", is_admin=True)
        session.add(user)
        session.flush()
        return {"Authorization": f"Bearer {auth.issue_user_token(session, user, 'benchmark', ['read'])}"}


def make_batches(run_id: UUID, num_events: int, batch_size: int, names: list[str]) -> list[bytes]:
    """Bodies made beforehand, so that the sender costs little."""
    now = datetime.now(UTC)
    events = [
        Event(
            run_id=run_id,
            attempt=1,
            emitter="driver/0",
            seq=seq,
            time=now,
            body=Metrics(step=seq, values={name: 1.0 / (seq + index) for index, name in enumerate(names)}),
        )
        for seq in range(1, num_events + 1)
    ]
    starts = range(0, num_events, batch_size)
    return [IngestRequest(events=events[start : start + batch_size]).model_dump_json().encode() for start in starts]


def deliver(url: str, token: str, batches: list[bytes]) -> list[float]:
    """Sends one run's batches one after the other; seconds for each."""
    times = []
    with httpx.Client(headers={"Authorization": f"Bearer {token}"} | JSON, timeout=60) as client:
        for batch in batches:
            begin = time.perf_counter()
            client.post(f"{url}/ingest", content=batch).raise_for_status()
            times.append(time.perf_counter() - begin)
    return times


def throughput(url: str, database: Database, num_runs: int, num_events: int, batch_size: int) -> dict[str, float]:
    """Durable points per second of runs that report at once."""
    runs = [make_run(database) for _ in range(num_runs)]
    batches = [make_batches(run_id, num_events, batch_size, NAMES) for run_id, _ in runs]
    begin = time.perf_counter()
    with ThreadPoolExecutor(num_runs) as threads:
        sent = threads.map(lambda pair: deliver(url, pair[0][1], pair[1]), zip(runs, batches, strict=True))
        times = [seconds for run_times in sent for seconds in run_times]
    wall = time.perf_counter() - begin
    num_points = num_runs * num_events * len(NAMES)
    _check(database, [run_id for run_id, _ in runs], num_points)
    return {"points_per_second": num_points / wall, "batch_p50_ms": 1000 * statistics.median(times)}


def _check(database: Database, run_ids: list[UUID], num_points: int) -> None:
    count = text("SELECT count(*) FROM point JOIN series ON series.id = series_id WHERE run_id = ANY(:run_ids)")
    with database.transaction() as session:
        stored = session.scalar(count, {"run_ids": run_ids})
    if stored != num_points:
        raise SystemExit(f"{stored} points are stored, not {num_points}")


def chart_query(url: str, database: Database, reader: dict[str, str], num_steps: int) -> dict[str, float]:
    """Time to read four curves of many steps as 2,000 buckets each."""
    run_id, token = make_run(database)
    names = NAMES[:4]
    deliver(url, token, make_batches(run_id, num_steps, 500, names))
    query = {"names": ",".join(names), "max_points": "2000"}
    with httpx.Client(headers=reader, timeout=60) as client:

        def read() -> int:
            return len(client.get(f"{url}/runs/{run_id}/series/data", params=query).raise_for_status().content)

        size = read()
        times = [_timed(read) for _ in range(10)]
    return {"query_p50_ms": 1000 * statistics.median(times), "response_kib": size / 1024}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def latency(url: str, database: Database, reader: dict[str, str], num_points: int) -> dict[str, float]:
    """From the moment before a point is sent to the moment its event arrives on a live stream."""
    run_id, token = make_run(database)
    batches = make_batches(run_id, num_points, 1, NAMES)
    arrived, is_open = threading.Semaphore(0), threading.Event()

    def listen() -> None:
        num_left = num_points
        with httpx.stream("GET", f"{url}/stream?runs={run_id}", headers=reader, timeout=60) as stream:
            for line in stream.iter_lines():
                if line == "event: open":
                    is_open.set()
                elif line == "event: series":
                    arrived.release()
                    num_left -= 1
                    if num_left == 0:
                        return

    listener = threading.Thread(target=listen)
    listener.start()
    is_open.wait()
    times = []
    with httpx.Client(headers={"Authorization": f"Bearer {token}"} | JSON, timeout=60) as client:
        for batch in batches:
            begin = time.perf_counter()
            client.post(f"{url}/ingest", content=batch).raise_for_status()
            arrived.acquire()
            times.append(time.perf_counter() - begin)
    listener.join()
    return {"latency_p50_ms": 1000 * statistics.median(times), "latency_max_ms": 1000 * max(times)}


def measure(scale: int) -> dict[str, dict[str, float]]:
    with services() as (url, database):
        reader = make_reader(database)
        throughput(url, database, 1, 100, 100)  # warm-up
        return {
            "1 run, 500 events a batch": throughput(url, database, 1, 2000 * scale, 500),
            "1 run, 50 events a batch": throughput(url, database, 1, 1000 * scale, 50),
            "4 runs at once, 100 events a batch": throughput(url, database, 4, 500 * scale, 100),
            "4 curves of 100,000 steps as 2,000 buckets": chart_query(url, database, reader, 100_000),
            "point to live stream": latency(url, database, reader, 100 * scale),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--scale", type=int, default=1, help="multiplies the work")
    arguments = parser.parse_args()
    results = measure(arguments.scale)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for name, values in results.items():
        print(f"{name:<45}" + "  ".join(f"{key} {value:,.0f}" for key, value in values.items()))


if __name__ == "__main__":
    main()
