"""The supervisor with small real processes in place of servers."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.plan import Plan, Preparation
from backend.embedded.ports import Ports
from backend.embedded.process import ServerProcess
from backend.embedded.records import load_records
from backend.embedded.service import PythonService
from backend.embedded.supervisor import Supervisor

SLEEP = "import time; time.sleep(1000)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.create()
    return home


def _service(home: Home, name: str, code: str = SLEEP, environment: dict[str, str] | None = None) -> PythonService:
    return PythonService(name, [sys.executable, "-c", code], environment or {}, home.root, home.logs / f"{name}.log")


def _plan(*services: PythonService, preparations: list[Preparation] | None = None) -> Plan:
    return Plan(Ports(9000), [], preparations or [], list(services))


def _find(home: Home, name: str) -> ServerProcess | None:
    records = load_records(home.processes)
    record = records.get(name) if records else None
    return record.find() if record else None


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.02)


@contextmanager
def _watched(supervisor: Supervisor) -> Iterator[None]:
    is_stopping = threading.Event()
    watch = threading.Thread(target=supervisor.watch, args=(is_stopping,))
    watch.start()
    try:
        yield
    finally:
        is_stopping.set()
        watch.join()


def test_children_start_are_recorded_and_end(home: Home) -> None:
    supervisor = Supervisor(home, _plan(_service(home, "one"), _service(home, "two")), lambda _: None)
    supervisor.start()
    records = load_records(home.processes)
    assert records is not None
    assert records.is_ready
    assert records.supervisor_pid == os.getpid()
    found = [_find(home, name) for name in ("one", "two")]
    assert all(found)
    supervisor.stop()
    assert not any(process.is_alive() for process in found if process)
    assert load_records(home.processes) is not None
    assert not load_records(home.processes).processes  # type: ignore[union-attr]


def test_a_killed_child_is_started_again(home: Home) -> None:
    reports: list[str] = []
    supervisor = Supervisor(home, _plan(_service(home, "one")), reports.append)
    supervisor.start()
    first = _find(home, "one")
    assert first is not None
    with _watched(supervisor):
        os.kill(first.pid, signal.SIGKILL)
        _wait(lambda: (found := _find(home, "one")) is not None and found.pid != first.pid)
    supervisor.stop()
    assert any("one ended with exit code -9: starting it again in 0.5 s" in report for report in reports)


def test_a_child_that_keeps_crashing_is_waited_for_longer_each_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.embedded.supervisor.WATCH_INTERVAL_S", 0.01)
    reports: list[str] = []
    supervisor = Supervisor(home, _plan(_service(home, "one", "raise SystemExit(4)")), reports.append)
    supervisor.start()
    for child in supervisor._children:
        child.delay_s = 0.1
    with _watched(supervisor):
        _wait(lambda: sum("exit code 4" in report for report in reports) >= 4)
    supervisor.stop()
    delays = [report.split("again in ")[1].split(" s")[0] for report in reports if "exit code 4" in report]
    assert delays[:4] == ["0.1", "0.2", "0.4", "0.8"]


def test_a_new_supervisor_adopts_what_a_killed_one_left(home: Home) -> None:
    first = Supervisor(home, _plan(_service(home, "one")), lambda _: None)
    first.start()
    left = _find(home, "one")
    assert left is not None
    second = Supervisor(home, _plan(_service(home, "one")), lambda _: None)
    second.start()
    adopted = _find(home, "one")
    assert adopted is not None
    assert adopted.pid == left.pid
    second.stop()
    assert not left.is_alive()
    first.stop()


def test_a_child_that_was_started_differently_is_replaced(home: Home) -> None:
    first = Supervisor(home, _plan(_service(home, "one")), lambda _: None)
    first.start()
    left = _find(home, "one")
    assert left is not None
    second = Supervisor(home, _plan(_service(home, "one", environment={"DATABASE_URL": "other"})), lambda _: None)
    second.start()
    replaced = _find(home, "one")
    assert replaced is not None
    assert replaced.pid != left.pid
    assert not left.is_alive()
    second.stop()
    first.stop()


def test_a_failed_start_leaves_nothing_behind(home: Home) -> None:
    def fail() -> None:
        raise EmbeddedError("no schema")

    server = _service(home, "server")
    plan = Plan(Ports(9000), [server], [Preparation("Preparing", fail)], [_service(home, "app")])
    with pytest.raises(EmbeddedError, match="no schema"):
        Supervisor(home, plan, lambda _: None).start()
    assert _find(home, "server") is None
    assert _find(home, "app") is None
    assert not (home.logs / "app.log").exists()
