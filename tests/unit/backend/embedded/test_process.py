import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from backend.embedded.errors import EmbeddedError
from backend.embedded.process import ServerProcess, _own_children, last_lines, wait_until_ready

SLEEP = [sys.executable, "-c", "import time; time.sleep(1000)"]


def test_a_process_is_found_again_by_pid_and_creation_time(tmp_path: Path) -> None:
    process = ServerProcess.spawn(SLEEP, log=tmp_path / "log")
    found = ServerProcess.find(process.pid, process.create_time)
    assert found is not None
    assert found.is_alive()
    assert ServerProcess.find(process.pid, process.create_time - 60) is None
    process.stop()
    assert not process.is_alive()
    assert not found.is_alive()
    assert ServerProcess.find(process.pid, process.create_time) is None


def test_a_process_has_a_session_of_its_own(tmp_path: Path) -> None:
    process = ServerProcess.spawn(SLEEP, log=tmp_path / "log")
    assert os.getsid(process.pid) == process.pid
    process.stop()


def test_stop_kills_what_does_not_listen_and_its_children(tmp_path: Path) -> None:
    deaf = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.Popen({SLEEP!r})\n"
        "print('deaf', flush=True)\n"
        "time.sleep(1000)"
    )
    log = tmp_path / "log"
    process = ServerProcess.spawn([sys.executable, "-c", deaf], log=log)
    wait_until_ready("deaf", process, lambda: None if "deaf" in last_lines(log) else "not yet", log)
    children = [child for child in process.tree() if child.pid != process.pid]
    assert len(children) == 1
    process.stop(timeout_s=0.1)
    assert process.exit_code == -signal.SIGKILL
    psutil.wait_procs(children, timeout=5)
    assert not children[0].is_running() or children[0].status() == psutil.STATUS_ZOMBIE


def test_waiting_ends_with_the_process_and_shows_this_starts_log_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("from an earlier start\n")
    process = ServerProcess.spawn([sys.executable, "-c", "print('no such file'); raise SystemExit(3)"], log=log)
    began = time.monotonic()
    with pytest.raises(EmbeddedError, match="Thing ended while starting") as caught:
        wait_until_ready("Thing", process, lambda: "not yet", log, timeout_s=60)
    assert time.monotonic() - began < 30
    assert "no such file" in str(caught.value)
    assert "earlier" not in str(caught.value)
    assert process.exit_code == 3


def test_waiting_ends_when_time_is_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = ServerProcess.spawn(SLEEP, log=log)
    with pytest.raises(EmbeddedError, match=r"Thing was not ready after 0 s \(HTTP 503\)"):
        wait_until_ready("Thing", process, lambda: "HTTP 503", log, timeout_s=0.05)
    process.stop()


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="/no/such/program"):
        ServerProcess.spawn(["/no/such/program"], log=tmp_path / "log")


def test_a_child_that_others_killed_and_reaped_is_forgotten(tmp_path: Path) -> None:
    lost = ServerProcess.spawn(SLEEP, log=tmp_path / "log")
    os.kill(lost.pid, signal.SIGKILL)
    os.waitpid(lost.pid, 0)
    other = ServerProcess.spawn(SLEEP, log=tmp_path / "log")
    assert not lost.is_alive()
    assert lost.pid not in _own_children
    other.stop()
    assert other.pid not in _own_children
