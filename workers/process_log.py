"""What a process of a run wrote last, for the message about its death."""

import logging
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

NUM_LINES = 20
_MAX_BYTES = 16_000
_FETCH_TIMEOUT_S = 10


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
        is_here = self.host == socket.gethostname()
        lines = _tail(Path(self.log)) if is_here else _fetched(self.address, Path(self.log).name)
        if lines:
            return f"{name}. Its log, {self.log}, ends with:\n" + "\n".join(lines)
        return f"{name}. It wrote no log." if is_here else f"{name}; its log is {self.log} there."


def _log_of_this_process() -> str | None:
    """Ray turns the standard error of its workers to a file."""
    try:
        target = os.readlink(f"/proc/self/fd/{sys.__stderr__.fileno()}")
    except (OSError, AttributeError, ValueError):
        return None
    return target if Path(target).is_file() else None


def _fetched(address: str, name: str) -> list[str]:
    """From another machine of the cluster, by Ray's own agents; nothing where they do not answer, for that machine may
    be gone with the process."""
    import ray  # noqa: PLC0415  not where a process only describes itself
    from ray.util.state import get_log  # noqa: PLC0415  it loads much, and is needed once in a run's life at most

    if not ray.is_initialized():
        return []
    try:
        cluster = ray.get_runtime_context().gcs_address
        return [
            line
            for part in get_log(cluster, node_ip=address, filename=name, tail=NUM_LINES, timeout=_FETCH_TIMEOUT_S)
            for line in part.splitlines()
        ][-NUM_LINES:]
    except Exception as error:  # whatever hinders it, the death is what has to be told
        logging.getLogger(__name__).warning("The log of the lost process cannot be fetched: %s", error)
        return []


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MAX_BYTES))
            return file.read().decode(errors="replace").splitlines()[-NUM_LINES:]
    except OSError:
        return []
