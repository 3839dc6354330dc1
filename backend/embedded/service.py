"""What the supervisor needs to know of a service, and the services that are our own Python processes."""

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from backend.embedded.ports import require_free
from backend.embedded.process import ServerProcess, wait_until_ready
from backend.embedded.records import ProcessRecord


class Service(Protocol):
    """Something that runs as a child of the supervisor."""

    @property
    def name(self) -> str:
        """For people; unique."""

    @property
    def port(self) -> int | None: ...

    @property
    def log(self) -> Path: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def stop_signal(self) -> signal.Signals: ...

    def start(self, earlier: ProcessRecord | None = None) -> ServerProcess:
        """Starts it, or finds the earlier one that still runs. Raises EmbeddedError."""

    def wait(self, process: ServerProcess) -> None:
        """Returns when it works. Raises EmbeddedError when it ends or takes too long."""

    def stop(self, process: ServerProcess) -> None: ...


@dataclass(frozen=True)
class PythonService:
    """The API, the worker or the scheduler."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    port: int | None = None
    probe: Callable[[], str | None] | None = None
    """Tells why it is not ready, or None; without one, a living process counts as ready."""
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 8.0

    @property
    def fingerprint(self) -> str:
        known_by = [list(self.argv), sorted(self.environment.items()), self.port]
        return sha256(json.dumps(known_by).encode()).hexdigest()

    def start(self, earlier: ProcessRecord | None = None) -> ServerProcess:
        process = earlier.find() if earlier else None
        if process is not None and earlier is not None and earlier.fingerprint != self.fingerprint:
            self.stop(process)
            process = None
        if process is None:
            if self.port is not None:
                require_free(self.name, self.port)
            process = ServerProcess.spawn(
                self.argv, log=self.log, environment=self.environment, directory=self.directory
            )
        return process

    def wait(self, process: ServerProcess) -> None:
        if self.probe is not None:
            wait_until_ready(self.name, process, self.probe, self.log, timeout_s=60)

    def stop(self, process: ServerProcess) -> None:
        process.stop(self.stop_signal, self.stop_timeout_s)
