"""One scoring process, as the driver holds it."""

import json
import os
import subprocess
import sys
import time
from typing import Any

from workers.rewards.dying import kill_descendants
from workers.rewards.limits import ProcessReward, time_limit_s
from workers.rewards.scorer import Failure, Response

_START_S = 60.0
"""For importing what scores."""
_GRACE_S = 2.0
"""A process that does not keep the time limit itself is killed so much later."""


class ScoringProcess:
    """Scores one response at a time; ended, it is replaced by a new one."""

    def __init__(self, reward: ProcessReward) -> None:
        self._limit_s = time_limit_s(reward)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workers.rewards.serve", reward.model_dump_json(), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
        self._buffer = b""
        self.is_ready = False
        """Has said that its scorer is made."""
        self.task: int | None = None
        """Index of the response that it scores."""
        self._deadline = time.monotonic() + _START_S

    def fileno(self) -> int:
        """Readable when an answer has come, or the process has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def is_overdue(self) -> bool:
        return (self.task is not None or not self.is_ready) and time.monotonic() > self._deadline

    def send(self, index: int, response: Response) -> None:
        """Have a response scored. Raises BrokenPipeError where the process has ended."""
        request = {"prompt": response.prompt, "text": response.text, "answer": response.answer}
        self.task, self._deadline = index, time.monotonic() + self._limit_s + _GRACE_S
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any] | None:
        """An answer, None while it is not complete. Raises EOFError where the process has ended."""
        part = os.read(self.fileno(), 1 << 16)
        if not part:
            raise EOFError
        self._buffer += part
        line, is_complete, rest = self._buffer.partition(b"\n")
        if not is_complete:
            return None
        self._buffer = rest
        answer: dict[str, Any] = json.loads(line)
        return answer

    def overdue(self) -> Failure:
        if not self.is_ready:
            return Failure("timeout", f"the scoring process was not up after {_START_S:g} s")
        return Failure("timeout", f"not back after {self._limit_s:g} s")

    def ended(self) -> Failure:
        """Why a process that has ended gives no score."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return Failure("died", "the scoring process closed its pipe")
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return Failure("died", f"the scoring process ended {how}")

    def kill(self) -> None:
        """End it and all that it has started."""
        kill_descendants(self._process.pid)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:  # what was not written yet
                continue


def _environment() -> dict[str, str]:
    """The driver's, less its own secrets, with its import path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREDECK_", "RAY_JOB"))}
    return kept | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), "OMP_NUM_THREADS": "1"}
