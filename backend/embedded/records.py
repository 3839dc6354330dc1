"""What runs, on disk: so that a new supervisor and `foredeck status` find the children of one that was killed."""

import signal
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from backend.embedded.process import ServerProcess


class ProcessRecord(BaseModel):
    """One child."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pid: int
    create_time: float
    """Seconds since the epoch; with the pid it names a process for good."""
    port: int | None
    log: Path
    fingerprint: str = ""
    """Digest of what it was started with; a child that was started differently is replaced, not adopted."""
    stop_signal: int = signal.SIGTERM

    def find(self) -> ServerProcess | None:
        return ServerProcess.find(self.pid, self.create_time)


class Records(BaseModel):
    """All children, in the order of their start."""

    model_config = ConfigDict(extra="forbid")

    supervisor_pid: int | None = None
    base_port: int
    is_ready: bool = False
    processes: list[ProcessRecord] = []

    def get(self, name: str) -> ProcessRecord | None:
        return next((record for record in self.processes if record.name == name), None)

    def put(self, record: ProcessRecord) -> None:
        self.drop(record.name)
        self.processes.append(record)

    def drop(self, name: str) -> None:
        self.processes = [record for record in self.processes if record.name != name]

    def save(self, path: Path) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(self.model_dump_json(indent=2))
        temporary.replace(path)


def load_records(path: Path) -> Records | None:
    """The records, or none before the first start."""
    try:
        return Records.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
