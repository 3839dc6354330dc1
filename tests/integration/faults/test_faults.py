"""Parts are taken away while real runs go on: nothing is lost, nothing comes twice, and the run ends well."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


def _wait(condition, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.1)


@contextmanager
def _without(installation, name: str) -> Iterator[None]:
    """The service is dead inside the block: its supervisor is frozen, so nobody starts it again."""
    supervisor = installation.supervisor_pid()
    os.kill(supervisor, signal.SIGSTOP)
    try:
        process = installation.process(name)
        os.kill(process.pid, signal.SIGKILL)
        _wait(lambda: installation.process(name) is None)
        yield
    finally:
        os.kill(supervisor, signal.SIGCONT)


def _ended(run) -> bool:
    return run["is_ended"]


def _series(installation, run_id: str, name: str) -> dict:
    with installation.api() as client:
        answer = client.get(f"/runs/{run_id}/series/data", params={"names": name}).raise_for_status()
    return answer.json()["series"][0]


def _num_points(installation, run_id: str, name: str) -> int:
    with installation.api() as client:
        listed = client.get(f"/runs/{run_id}/series").raise_for_status().json()
    return next(series["num_points"] for series in listed if series["name"] == name)


def _spooled_bytes(installation, run_id: str) -> int:
    folder: Path = installation.home.storage / "runs" / run_id
    return sum(path.stat().st_size for path in folder.glob("attempt-*/spool/**/*") if path.is_file())


def test_while_the_api_is_down_the_worker_goes_on_and_nothing_is_lost(warm_installation) -> None:
    run_id = warm_installation.launch("api down", 12)
    warm_installation.run_when(run_id, lambda run: run["step"] >= 2)
    with _without(warm_installation, "API"):
        before = _spooled_bytes(warm_installation, run_id)
        _wait(lambda: _spooled_bytes(warm_installation, run_id) > before + 5_000)
    _wait(lambda: warm_installation.process("API") is not None)
    _wait(lambda: warm_installation.foredeck("runs").returncode == 0)
    run = warm_installation.run_when(run_id, _ended)
    assert run["status"] == "succeeded", run["status_reason"]
    assert len(run["attempts"]) == 1
    assert _series(warm_installation, run_id, "reward/train_mean")["step"] == list(range(1, 13))
    assert _num_points(warm_installation, run_id, "reward/train_mean") == 12


def test_without_redis_a_run_is_dispatched_and_ends_well(warm_installation) -> None:
    with _without(warm_installation, "Valkey"):
        with warm_installation.api() as client:
            ready = client.get("/ready")
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        assert ready.json()["checks"]["redis"] != "ok"
        run = warm_installation.run(warm_installation.launch("redis down", 2, "--wait"))
    assert run["status"] == "succeeded", run["status_reason"]
    assert _series(warm_installation, run["id"], "reward/train_mean")["step"] == [1, 2]
    _wait(lambda: warm_installation.process("Valkey") is not None)


def _process(run_id: str, attempt: int, command: str) -> psutil.Process:
    """One of an attempt's processes, by how its command line begins or what it runs."""
    for process in psutil.process_iter():
        try:
            text = process.environ().get("FOREDECK_ASSIGNMENT", "")
            assignment = json.loads(text) if run_id in text else {}
            is_of_it = (assignment.get("run_id"), assignment.get("attempt")) == (run_id, attempt)
            if is_of_it and command in " ".join(process.cmdline()):
                return process
        except psutil.Error:
            continue
    raise AssertionError(f"no {command} of {run_id}, attempt {attempt}")


def _own_checkpoint(run, attempt: int) -> int | None:
    """Step of the newest checkpoint that an attempt has brought."""
    return run["attempts"][attempt - 1]["last_checkpoint_step"] if len(run["attempts"]) >= attempt else None


def test_a_killed_driver_and_a_killed_engine_are_followed_by_attempts_that_resume(warm_installation) -> None:
    # As many steps as leave time for both, however quick they are.
    run_id = warm_installation.launch("killed", 40)
    warm_installation.run_when(run_id, lambda run: (run["last_checkpoint_step"] or 0) >= 3)
    _process(run_id, 1, "-m workers.main").kill()
    run = warm_installation.run_when(run_id, lambda run: _own_checkpoint(run, 2) is not None)
    engine = _process(run_id, 2, "ray::RolloutActor")
    engine.kill()
    reached = _own_checkpoint(run, 2)
    run = warm_installation.run_when(run_id, _ended)
    assert run["status"] == "succeeded", run["status_reason"]
    first, second, third = run["attempts"]
    assert (first["outcome"], second["outcome"], third["outcome"]) == ("crashed", "failed", "succeeded")
    assert second["resumed_from_step"] >= 3
    assert third["resumed_from_step"] >= reached
    assert "Rollout engine" in second["error"]
    assert f"It was process {engine.pid} on " in second["error"]
    series = _series(warm_installation, run_id, "reward/train_mean")
    assert series["step"] == list(range(1, 41))
    resumed = second["resumed_from_step"]
    assert all(attempt == 1 for attempt in series["attempt"][:resumed])
    assert series["attempt"][-1] == 3
