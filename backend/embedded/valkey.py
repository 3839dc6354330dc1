"""Valkey, which speaks Redis' protocol: loopback only, password-protected, every second on disk."""

import signal
from pathlib import Path

import redis

from backend.embedded.binaries import valkey_server
from backend.embedded.passwords import kept_password, write_private
from backend.embedded.ports import HOST, require_free
from backend.embedded.process import ServerProcess, wait_until_ready
from backend.embedded.records import ProcessRecord


class ValkeyServer:
    """One data folder and the server on it."""

    name = "Valkey"
    fingerprint = ""
    stop_signal = signal.SIGTERM

    def __init__(self, home: Path, port: int) -> None:
        self.port = port
        self._dir = home / "valkey"
        self._dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log = home / "logs" / "valkey.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._password = kept_password(home / "valkey.password")
        self._pid_file = self._dir / "valkey.pid"

    @property
    def url(self) -> str:
        return self.url_of(0)

    def url_of(self, database: int) -> str:
        return f"redis://:{self._password}@{HOST}:{self.port}/{database}"

    def start(self, earlier: ProcessRecord | None = None) -> ServerProcess:
        """Starts the server, or finds the one that runs already by its own pid file, and waits until it answers.

        Raises:
            EmbeddedError: the port is taken, or the server does not come up.
        """
        running = self.find()
        if running is not None:
            return running
        require_free(self.name, self.port)
        configuration = self._dir / "valkey.conf"
        write_private(configuration, self._configuration())  # a password in the arguments would show in `ps`
        process = ServerProcess.spawn([str(valkey_server()), str(configuration)], log=self.log, directory=self._dir)
        self._pid_file.write_text(f"{process.pid} {process.create_time} {self.port}")
        self.wait(process)
        return process

    def find(self) -> ServerProcess | None:
        """The server that runs on this data folder; one on another port is stopped first."""
        if not self._pid_file.exists():
            return None
        pid, create_time, port = self._pid_file.read_text().split()
        process = ServerProcess.find(int(pid), float(create_time))
        if process is not None and int(port) != self.port:
            self.stop(process)
            return None
        if process is not None:
            self.wait(process)
        return process

    def wait(self, process: ServerProcess) -> None:
        wait_until_ready(self.name, process, self.probe, self.log)

    def probe(self) -> str | None:
        try:
            with redis.Redis.from_url(self.url, socket_connect_timeout=3) as client:
                client.ping()
        except redis.RedisError as error:
            return str(error)
        return None

    def stop(self, process: ServerProcess) -> None:
        process.stop()

    def _configuration(self) -> str:
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"dir {self._dir}",
            f"requirepass {self._password}",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
            "daemonize no",
            "databases 1024",
        ]
        return "\n".join(lines) + "\n"
