"""A process that was started here, or found again after its starter died."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict

import psutil

from backend.embedded.errors import EmbeddedError

POLL_INTERVAL_S = 0.03

_own_children: dict[int, subprocess.Popen[bytes]] = {}
"""Children of this very process, by pid: whoever finds one again must also be able to reap it."""


def _forget_the_dead() -> None:
    """Those that were killed and reaped by others: asked for, they are known to have ended."""
    for pid, popen in list(_own_children.items()):
        if popen.poll() is not None:
            del _own_children[pid]


@dataclass(frozen=True)
class Account:
    """A system account to run a process as, by numbers."""

    uid: int
    gid: int


class ServerProcess:
    """Has its own session, so that a terminal's Ctrl-C reaches only the supervisor, which stops it in order."""

    def __init__(
        self, process: psutil.Process, popen: subprocess.Popen[bytes] | None = None, log_start: int = 0
    ) -> None:
        self._process = process
        self._popen = popen
        self.log_start = log_start
        """Where its part of the log begins, in bytes."""
        self.pid = process.pid
        self.create_time = process.create_time()

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path = Path("/"),
        account: Account | None = None,
    ) -> Self:
        """Starts `argv` with its output appended to `log`.

        Raises:
            EmbeddedError: the program is not there or may not be run.
        """
        with log.open("ab") as output:
            log_start = output.tell()
            try:
                popen = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=directory,
                    env=None if environment is None else dict(environment),
                    start_new_session=True,
                    **as_account(account),
                )
            except OSError as error:
                raise EmbeddedError(f"Cannot start {argv[0]}: {error}.") from error
        _forget_the_dead()
        _own_children[popen.pid] = popen
        return cls(psutil.Process(popen.pid), popen, log_start)

    @classmethod
    def find(cls, pid: int, create_time: float | None = None) -> Self | None:
        """The living process of this id; with `create_time` (s since the epoch), only if it is the same one."""
        try:
            found = cls(psutil.Process(pid), _own_children.get(pid))
        except psutil.Error:
            return None
        is_same = create_time is None or abs(found.create_time - create_time) < 0.1
        return found if is_same and found.is_alive() else None

    def is_alive(self) -> bool:
        if self._popen is not None:
            return self._popen.poll() is None
        try:
            return self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    @property
    def exit_code(self) -> int | None:
        """Known only for a process started here."""
        return None if self._popen is None else self._popen.poll()

    def tree(self) -> list[psutil.Process]:
        """The process and all below it."""
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def arguments(self) -> list[str]:
        try:
            return self._process.cmdline()
        except psutil.Error:
            return []

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 10.0) -> None:
        """Asks it to end and waits; what is left of it and its children after `timeout_s` is killed."""
        tree = self.tree()
        if self.is_alive():
            self._process.send_signal(how)
        deadline = time.monotonic() + timeout_s
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
        for process in tree:
            try:
                process.kill()  # psutil compares creation times: a reused id is never hit
            except psutil.NoSuchProcess:
                continue
        if self._popen is not None:
            self._popen.wait()
            _own_children.pop(self.pid, None)


class AccountArguments(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def as_account(account: Account | None) -> AccountArguments:
    """Arguments of subprocess that drop to an account; none when it stays the caller's."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def last_lines(log: Path, start: int = 0, num_lines: int = 15) -> str:
    """The end of the log, from byte `start` at most."""
    if not log.exists():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - 8192), os.SEEK_SET)
        return "\n".join(file.read().decode(errors="replace").splitlines()[-num_lines:])


def wait_until_ready(
    service: str, process: ServerProcess, probe: Callable[[], str | None], log: Path, timeout_s: float = 30.0
) -> None:
    """Waits until `probe` returns None; any text is the reason why it is not ready yet.

    Raises:
        EmbeddedError: the process ended, or time ran out; with the end of its log.
    """
    deadline = time.monotonic() + timeout_s
    while (reason := probe()) is not None:
        if not process.is_alive():
            raise EmbeddedError(f"{service} ended while starting. {_end_of(log, process)}")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{service} was not ready after {timeout_s:.0f} s ({reason}). {_end_of(log, process)}")
        time.sleep(POLL_INTERVAL_S)


def _end_of(log: Path, process: ServerProcess) -> str:
    return f"The end of {log}:\n{last_lines(log, process.log_start)}"
