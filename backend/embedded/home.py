"""The folder that holds everything of one installation, and the lock that lets one supervisor at a time use it."""

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from backend.embedded.errors import EmbeddedError


@dataclass(frozen=True)
class Home:
    """Paths below FOREDECK_HOME."""

    root: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Home":
        return cls(Path(environment.get("FOREDECK_HOME") or Path.home() / ".foredeck").expanduser().absolute())

    def create(self) -> None:
        """Makes the folders; a new home is readable by its owner alone."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.logs, self.storage, self.ray_handshake):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(
                f"The data folder {self.root} cannot be made: {error}. Set FOREDECK_HOME to a folder of yours."
            ) from error

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def storage(self) -> Path:
        """Checkpoints, spools and caches of runs on this machine's Ray."""
        return self.root / "storage"

    @property
    def ray_handshake(self) -> Path:
        """Where the launcher asks for Ray and reads where it is."""
        return self.root / "embedded-ray"

    @property
    def credentials(self) -> Path:
        """The command line's address and token."""
        return self.root / "credentials.json"

    @property
    def processes(self) -> Path:
        return self.root / "processes.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "supervisor.lock"


class HomeLock:
    """Held while a supervisor lives; the system lets go of it when the supervisor dies, however that happens."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Raises EmbeddedError when another supervisor holds it."""
        file = self._home.lock_file.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise EmbeddedError(
                f"Foredeck already runs on {self._home.root} (process {holder}). `foredeck status` shows it and "
                "`foredeck down` stops it. For a second one, set FOREDECK_HOME and FOREDECK_PORT."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def is_locked(home: Home) -> bool:
    """Whether a supervisor lives."""
    if not home.lock_file.exists():
        return False
    with home.lock_file.open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
