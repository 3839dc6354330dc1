"""Programs run apart: limited in time, memory, files and processes, without network and other files where possible."""

import json
import os
import secrets
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workers.rewards.dying import adopt_orphans, kill_descendants

_START = Path(__file__).with_name("sandbox_start.py")
_FILE_BYTES = 16 * 2**20
_NUM_FILES, _NUM_PROCESSES = 64, 32
_START_S = 1
"""Processor time for starting Python, next to the program's own."""
_MAX_START_S = 4.0
"""By the clock: on a busy machine the start must not take the program's own time away."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended."""

    is_done: bool
    """In time and without an error."""
    output: str
    passed: list[bool] | None
    """Of each test that ran after it; None without tests, or where the program did not live to see them."""
    enforced: dict[str, bool] | None
    """What could be limited or taken away, as confine() says; None where the sandbox itself did not start."""
    errors: str
    """The end of what it wrote to stderr."""


class Sandbox:
    """Runs one program at a time. What a program leaves running is killed among this process's descendants."""

    def __init__(self, memory_mib: int) -> None:
        self._memory_bytes = memory_mib * 2**20
        adopt_orphans()

    def run(self, program: str, timeout_s: float, *, stdin: str = "", tests: Sequence[str] | None = None) -> Outcome:
        """Run a program in a folder of its own, with an empty environment."""
        with tempfile.TemporaryDirectory(prefix="foredeck-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o711)  # so that another user reaches what is inside
            work = folder / "work"
            work.mkdir()
            (folder / "program.py").write_text(program, encoding="utf-8", errors="replace")
            (folder / "stdin").write_text(stdin, encoding="utf-8", errors="replace")
            return self._run(folder, timeout_s, tests)

    def _run(self, folder: Path, timeout_s: float, tests: Sequence[str] | None) -> Outcome:
        token = secrets.token_hex(8)
        reading, writing = os.pipe()
        told = {
            "program": str(folder / "program.py"),
            "work": str(folder / "work"),
            "limits": {
                "RLIMIT_AS": self._memory_bytes,
                "RLIMIT_CPU": int(timeout_s) + 1 + _START_S,
                "RLIMIT_FSIZE": _FILE_BYTES,
                "RLIMIT_NOFILE": _NUM_FILES,
                "RLIMIT_NPROC": _NUM_PROCESSES,
                "RLIMIT_CORE": 0,
            },
            "parent": os.getpid(),
            "status_fd": writing,
            "tests": None if tests is None else list(tests),
            "token": token,
        }
        with (
            open(reading, "rb", buffering=0) as pipe,
            open(writing, "wb", buffering=0) as its_end,
            (folder / "stdin").open() as stdin,
            (folder / "stdout").open("w+b") as output,
            (folder / "stderr").open("w+b") as errors,
        ):
            process = _started(told, stdin, output, errors)
            its_end.close()  # here, so that the pipe ends with the program
            is_done = _finish(process, pipe, timeout_s)
            reports = _reports(reading)
            passed = next((each["passed"] for each in reports if each.get("token") == token), None)
            enforced = next((each["enforced"] for each in reports if "enforced" in each), None)
            return Outcome(is_done, _text(output), passed, enforced, _text(errors)[-1000:])


def _started(told: dict[str, object], stdin: IO[str], output: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(_START), json.dumps(told)],
        stdin=stdin,
        stdout=output,
        stderr=errors,
        cwd=str(told["work"]),
        env={},
        pass_fds=[int(str(told["status_fd"]))],
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[bytes], pipe: IO[bytes], timeout_s: float) -> bool:
    """Whether the program ended by itself, in time and well. Afterwards nothing of it runs any more."""
    try:
        return _has_begun(pipe) and process.wait(timeout_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.kill()
        process.wait()
        kill_descendants(os.getpid())
        _reap()


def _has_begun(pipe: IO[bytes]) -> bool:
    """Waits for the first report, right before the program, or for the end of a start that failed."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(_MAX_START_S))


def _reap() -> None:
    """Take note of the ends of processes that a program left to this one."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _reports(pipe: int) -> list[dict[str, object]]:
    """Lines of JSON that came through; a program may have written to the pipe, too, so anything may be there."""
    os.set_blocking(pipe, False)
    content = b""
    with suppress(BlockingIOError):
        while part := os.read(pipe, 1 << 16):
            content += part
    reports = []
    for line in content.splitlines():
        with suppress(ValueError):
            reports.append(json.loads(line))
    return [report for report in reports if isinstance(report, dict)]


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
