"""What a process of a run wrote last, for the message about its death."""

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

NUM_LINES = 20
_MAX_BYTES = 16_000


@dataclass(frozen=True, slots=True)
class Process:
    """A process that Ray started, as it describes itself."""

    host: str
    address: str
    """IP address by which the other machines of the cluster reach it."""
    pid: int
    log: str | None
    """File that its standard error goes to, on its own machine."""
    devices: tuple[str, ...] = ()
    """The GPUs that it was given, as CUDA_VISIBLE_DEVICES names them."""

    @classmethod
    def this(cls, address: str) -> "Process":
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return cls(
            socket.gethostname(), address, os.getpid(), _log_of_this_process(), tuple(filter(None, devices.split(",")))
        )

    def last_words(self) -> str:
        """Who it was, and the last lines of its log where that can be read from this machine."""
        name = f"It was process {self.pid} on {self.host}"
        if self.log is None:
            return f"{name}."
        if self.host != socket.gethostname():
            return f"{name}; its log is {self.log} there."
        lines = _tail(Path(self.log))
        return f"{name}. Its log, {self.log}, ends with:\n" + "\n".join(lines) if lines else f"{name}. It wrote no log."


def _log_of_this_process() -> str | None:
    """Ray turns the standard error of its workers to a file."""
    try:
        target = os.readlink(f"/proc/self/fd/{sys.__stderr__.fileno()}")
    except (OSError, AttributeError, ValueError):
        return None
    return target if Path(target).is_file() else None


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MAX_BYTES))
            return file.read().decode(errors="replace").splitlines()[-NUM_LINES:]
    except OSError:
        return []
