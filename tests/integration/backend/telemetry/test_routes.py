"""Telemetry over HTTP: in process where a request ends by itself, through a real server where it streams."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from backend.auth import service as auth
from backend.db import Database
from backend.main import create_app
from backend.models import User
from backend.settings import Settings
from backend.telemetry.schemas import SamplesRead, SeriesData
from contract.telemetry.events import Event, IngestRequest, Log, Metrics, Round, Sample, Samples
from tests.ports import free_base_port

LOSS = "policy/loss"
REPOSITORY = Path(__file__).parents[4]


@pytest.fixture
def client(database_url: str, redis_url: str) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(DATABASE_URL=database_url, REDIS_URL=redis_url))) as client:
        yield client


@pytest.fixture
def reader(database: Database) -> dict[str, str]:
    with database.transaction() as session:
        user = User(name=f"u-{uuid4()}", is_admin=True)
        session.add(user)
        session.flush()
        token = auth.issue_user_token(session, user, "t", ["read"])
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def worker_of(database: Database) -> Callable[[UUID], dict[str, str]]:
    def make(run_id: UUID) -> dict[str, str]:
        with database.transaction() as session:
            token = auth.issue_worker_token(session, run_id)
        return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    return make


def body(*events: Event) -> str:
    return IngestRequest(events=list(events)).model_dump_json()


def test_a_worker_reports_and_a_reader_reads(client, make_run, make_event, reader, worker_of) -> None:
    run_id = make_run()
    values = {1: 0.5, 2: float("nan"), 3: float("-inf")}
    events = [make_event(run_id, seq, Metrics(step=seq, values={LOSS: value})) for seq, value in values.items()]
    answer = client.post("/api/v1/ingest", content=body(*events), headers=worker_of(run_id))
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "acknowledged": [{"attempt": 1, "emitter": "driver/0", "seq": 3}],
        "current_attempt": 1,
        "is_stop_requested": False,
    }
    data = client.get(f"/api/v1/runs/{run_id}/series/data", params={"names": LOSS}, headers=reader).json()
    assert SeriesData.model_validate(data).model_dump() == data, "the fast path writes what the schema says"
    assert data["series"][0] | {"name": ""} == {
        "name": "",
        "step": [1, 2, 3],
        "value": [0.5, None, None],
        "min": [0.5, None, None],
        "max": [0.5, None, None],
        "attempt": [1, 1, 1],
        "num_non_finite": 2,
    }
    (listed,) = client.get(f"/api/v1/runs/{run_id}/series", headers=reader).json()
    assert (listed["name"], listed["num_points"], listed["num_non_finite"], listed["last_value"]) == (LOSS, 3, 2, None)


def test_samples_and_logs_are_read_back(client, make_run, make_event, reader, worker_of) -> None:
    run_id = make_run()
    sample = Sample(
        prompt="1+1=", response="<b>2</b>", reward=1, advantage=0, is_truncated=False, rounds=[], vocabulary={1: "x"}
    )
    events = [
        make_event(run_id, 1, Samples(step=5, samples=[sample])),
        make_event(run_id, 2, Log(level="info", message="hi")),
    ]
    client.post("/api/v1/ingest", content=body(*events), headers=worker_of(run_id)).raise_for_status()
    found = SamplesRead.model_validate(client.get(f"/api/v1/runs/{run_id}/samples", headers=reader).json())
    assert (found.step, found.items[0].response, found.items[0].vocabulary) == (5, "<b>2</b>", {1: "x"})
    page = client.get(f"/api/v1/runs/{run_id}/logs", params={"search": "HI", "level": "info"}, headers=reader).json()
    assert [line["message"] for line in page["items"]] == ["hi"]
    assert page["last_id"] == page["items"][0]["id"]


def test_stored_rollouts_are_a_parquet_file_for_readers(
    client, make_run, make_event, reader, worker_of, tmp_path
) -> None:
    run_id = make_run()
    path, file = f"/api/v1/runs/{run_id}/samples.parquet", tmp_path / "rounds.parquet"
    file.write_bytes(client.get(path, headers=reader).raise_for_status().content)
    assert parquet.read_table(file).num_rows == 0
    first = Round(drafted=[], num_accepted=0, emitted=1, draft_logprobs=[], policy_logprobs=[])
    sample = Sample(
        prompt="1+1=",
        response="2",
        reward=1,
        advantage=0.5,
        is_truncated=False,
        rounds=[first],
        vocabulary={1: "2"},
    )
    event = make_event(run_id, 1, Samples(step=5, samples=[sample]))
    client.post("/api/v1/ingest", content=body(event), headers=worker_of(run_id)).raise_for_status()
    answer = client.get(path, headers=reader)
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert answer.headers["content-disposition"] == f'attachment; filename="{run_id}-samples.parquet"'
    file.write_bytes(answer.content)
    (row,) = parquet.read_table(file).to_pylist()
    assert (row["run_id"], row["step"], row["response"], row["emitted_text"]) == (str(run_id), 5, "2", "2")
    assert client.get(path).status_code == 401
    assert client.get(path, headers=worker_of(run_id)).status_code == 403


def test_ingest_says_what_is_wrong_and_where(client, make_run, make_event, worker_of) -> None:
    run_id = make_run()
    good = json.loads(body(make_event(run_id, 1, Metrics(step=1, values={LOSS: 1.0}))))
    bad = good["events"][0] | {"seq": 0, "body": {"kind": "metrics", "step": -1, "values": {"policy/lost": 1}}}
    answer = client.post("/api/v1/ingest", json={"events": [bad]}, headers=worker_of(run_id))
    assert answer.status_code == 422
    problems = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert problems.keys() == {"/events/0/seq", "/events/0/body/step", "/events/0/body/values"}
    assert "policy/lost" in problems["/events/0/body/values"]
    answer = client.post("/api/v1/ingest", content="{", headers=worker_of(run_id))
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


def test_ingest_refuses_strangers_and_foreign_runs(client, make_run, make_event, reader, worker_of) -> None:
    mine, other = make_run(), make_run()
    json_kind = {"Content-Type": "application/json"}
    content = body(make_event(other, 1, Metrics(step=1, values={LOSS: 1.0})))
    assert client.post("/api/v1/ingest", content=content, headers=json_kind).status_code == 401
    assert client.post("/api/v1/ingest", content=content, headers=reader | json_kind).status_code == 403
    assert client.post("/api/v1/ingest", content=content, headers=worker_of(mine)).status_code == 403


BAD_QUERIES = [
    ("series/data", "names"),
    ("series/data?names=policy/lost", "names"),
    ("series/data?names=policy/loss&max_points=0", "max_points"),
    ("series/data?names=policy/loss&from_step=2147483648", "from_step"),
    ("logs?level=loud", "level"),
    ("logs?lewel=info", "lewel"),
    ("logs?after=-1", "after"),
    ("samples?limit=1000", "limit"),
]


def test_bad_queries_are_refused_by_name(client, make_run, reader) -> None:
    run_id = make_run()
    for path, name in BAD_QUERIES:
        answer = client.get(f"/api/v1/runs/{run_id}/{path}", headers=reader)
        assert answer.status_code == 422, path
        assert [error["parameter"] for error in answer.json()["errors"]] == [name]


def test_an_unknown_run_is_a_404(client, reader) -> None:
    for path in ("series", "series/data?names=policy/loss", "samples", "samples.parquet", "logs", "logs/stream"):
        assert client.get(f"/api/v1/runs/{uuid4()}/{path}", headers=reader).status_code == 404, path


def test_a_stream_wants_known_runs_and_a_reader(client, make_run, reader, worker_of) -> None:
    run_id = make_run()
    assert client.get(f"/api/v1/stream?runs={uuid4()}", headers=reader).status_code == 404
    assert client.get("/api/v1/stream?runs=all,none", headers=reader).status_code == 422
    for path in ("stream", f"runs/{run_id}/logs/stream", f"runs/{run_id}/logs", f"runs/{run_id}/series"):
        assert client.get(f"/api/v1/{path}").status_code == 401
        assert client.get(f"/api/v1/{path}", headers=worker_of(run_id)).status_code == 403


@pytest.fixture
def server(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """(base URL, process) of uvicorn as it is run in production, but without a limit on a graceful shutdown."""
    port = free_base_port()
    command = [sys.executable, "-m", "uvicorn", "backend.main:app", "--port", str(port), "--no-access-log"]
    environment = os.environ | {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "FOREDECK_HOME": str(tmp_path)}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/api/v1"
    try:
        _wait_for(f"{url}/health", process)
        yield url, process
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(url, timeout=5).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not start")


def read_until(lines: Iterator[str], event: str) -> list[tuple[str, dict[str, Any], str | None]]:
    """(event, data, id) of each event up to the first of the given kind."""
    found, fields = [], {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"]), fields.get("id")))
            if fields["event"] == event:
                return found
        fields = {}
    raise AssertionError(f"the stream ended before {event}: {found}")


def test_streams_over_a_real_server_live_replay_and_close_at_shutdown(
    server, make_run, make_event, reader, worker_of
) -> None:
    url, process = server
    run_id = make_run()
    worker = worker_of(run_id)

    def report(seq: int, *bodies: Any) -> None:
        events = [make_event(run_id, seq + offset, content) for offset, content in enumerate(bodies)]
        httpx.post(f"{url}/ingest", content=body(*events), headers=worker).raise_for_status()

    with (
        httpx.Client(headers=reader, timeout=20) as client,
        client.stream("GET", f"{url}/stream?runs={run_id}") as live,
    ):
        lines = live.iter_lines()
        assert live.headers["content-type"].startswith("text/event-stream")
        ((_, _, first_id),) = read_until(lines, "open")
        report(1, Metrics(step=7, values={LOSS: 1.0}))
        ((_, data, second_id),) = read_until(lines, "series")
        assert data == {"run_id": str(run_id), "names": [LOSS], "step": 7, "from_step": 7}
        assert int(second_id or 0) > int(first_id or 0)
        report(2, Log(level="info", message="hello"))
        read_until(lines, "log")

        with client.stream("GET", f"{url}/stream", headers={"Last-Event-ID": str(second_id)}) as again:
            missed = read_until(again.iter_lines(), "open")
            assert [event for event, *_ in missed] == ["log", "open"]
        with client.stream("GET", f"{url}/runs/{run_id}/logs/stream") as log:
            log_lines = log.iter_lines()
            assert read_until(log_lines, "log")[0][1]["message"] == "hello"

            process.send_signal(signal.SIGTERM)
            assert [*log_lines][-1:] in ([], [""])
            assert [*lines][-1:] in ([], [""])
    assert process.wait(timeout=15) in {0, -signal.SIGTERM}
