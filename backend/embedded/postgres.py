"""PostgreSQL from a wheel: TCP on loopback only, password-protected, durable, found again by its pid file."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg

from backend.embedded.binaries import (
    SYSTEM_DIR,
    can_reach,
    reachable_postgres,
    system_dir_for,
    unprivileged_account,
)
from backend.embedded.errors import EmbeddedError
from backend.embedded.passwords import kept_password, write_private
from backend.embedded.ports import HOST, is_free, require_free
from backend.embedded.process import ServerProcess, as_account, wait_until_ready
from backend.embedded.records import ProcessRecord

USER = "foredeck"
DATABASE = "postgres"
# Small: the service and its worker hold a few connections, and an idle laptop should not notice it.
SETTINGS = {
    "shared_buffers": "32MB",
    "max_connections": "60",
    "io_method": "sync",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "unix_socket_directories": "",
}
_MAX_STARTS = 8
_LEFTOVERS_TIMEOUT_S = 30.0


class PostgresServer:
    """One data folder and the server on it."""

    name = "PostgreSQL"
    fingerprint = ""
    stop_signal = signal.SIGINT  # PostgreSQL's fast shutdown

    def __init__(self, home: Path, port: int, settings: Mapping[str, str] | None = None) -> None:
        """`home` holds the data and the password unless root's `nobody` cannot reach it; `settings` go on top."""
        self.port = port
        self._settings = SETTINGS | dict(settings or {})
        self._account = unprivileged_account()
        self.log = home / "logs" / "postgres.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._password = kept_password(home / "postgres.password")
        self._base = self._base_dir(home)
        self.data_dir = self._base / "postgres"

    def _base_dir(self, home: Path) -> Path:
        if self._account is None or can_reach(home, self._account):
            return home
        base = system_dir_for(home)
        try:
            SYSTEM_DIR.mkdir(mode=0o755, parents=True, exist_ok=True)
            base.mkdir(mode=0o700, exist_ok=True)
            os.chown(base, self._account.uid, self._account.gid)
        except OSError as error:
            raise EmbeddedError(
                f"PostgreSQL must not run as root, and {base}, where its data would lie, cannot be made: {error}. "
                "Start Foredeck as an ordinary user, or set DATABASE_URL to a server of yours."
            ) from error
        return base

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the database."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql+psycopg://{USER}:{quote(self._password)}@{HOST}:{self.port}/{database}"

    def conninfo(self, database: str = DATABASE) -> str:
        """The same for psycopg itself."""
        return self.url_of(database).replace("+psycopg", "", 1)

    def start(self, earlier: ProcessRecord | None = None) -> ServerProcess:
        """Starts the server, or finds the one that runs already by its own pid file, and waits until it answers.

        Raises:
            EmbeddedError: the port is taken, or the server does not come up.
        """
        running = self.find()
        if running is not None:
            return running
        self._await_leftovers()
        require_free(self.name, self.port)
        if not (self.data_dir / "PG_VERSION").exists():
            self._initialise()
        for num_starts in range(1, _MAX_STARTS + 1):
            process = self._spawn()
            try:
                self.wait(process)
            except EmbeddedError:
                # Right after a kill -9 the dead server's lock file or shared memory can still be in the way.
                if process.is_alive() or num_starts == _MAX_STARTS:
                    self.stop(process)
                    raise
                time.sleep(0.2 * num_starts)
            else:
                break
        return process

    def _await_leftovers(self) -> None:
        """After a kill -9 of the server its children end by themselves, but hold the port until they have."""
        deadline = time.monotonic() + _LEFTOVERS_TIMEOUT_S
        while self._pid_file() and not is_free(self.port) and time.monotonic() < deadline:
            time.sleep(0.05)

    def find(self) -> ServerProcess | None:
        """The server that runs on this data folder; one on another port is stopped first."""
        process = self._by_pid_file()
        if process is None:
            return None
        if self._port_in_pid_file() != self.port:
            self.stop(process)
            return None
        self.wait(process)
        return process

    def wait(self, process: ServerProcess) -> None:
        wait_until_ready(self.name, process, self.probe, self.log)

    def probe(self) -> str | None:
        try:
            psycopg.connect(self.conninfo(), connect_timeout=3).close()
        except psycopg.OperationalError as error:
            return str(error).strip()
        return None

    def stop(self, process: ServerProcess) -> None:
        process.stop(self.stop_signal, timeout_s=20)

    def _pid_file(self) -> list[str]:
        try:
            return (self.data_dir / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _by_pid_file(self) -> ServerProcess | None:
        lines = self._pid_file()
        process = ServerProcess.find(int(lines[0])) if lines else None
        # After a reboot the id can be somebody else's.
        return process if process and str(self.data_dir) in process.arguments() else None

    def _port_in_pid_file(self) -> int | None:
        lines = self._pid_file()
        return int(lines[3]) if len(lines) > 3 else None

    def _spawn(self) -> ServerProcess:
        settings = [argument for key, value in self._settings.items() for argument in ("-c", f"{key}={value}")]
        program = reachable_postgres(self._account) / "bin" / "postgres"
        argv = [str(program), "-D", str(self.data_dir), "-h", HOST, "-p", str(self.port), *settings]
        return ServerProcess.spawn(argv, log=self.log, account=self._account)

    def _initialise(self) -> None:
        """initdb into a folder of its own, renamed when complete, so that a kill leaves nothing half-made."""
        incomplete = self.data_dir.with_name(f"postgres.initdb-{os.getpid()}")
        incomplete.mkdir(mode=0o700)
        password_file = self._base / f"postgres.pwfile-{os.getpid()}"
        write_private(password_file, self._password)
        if self._account is not None:
            for path in (incomplete, password_file):
                os.chown(path, self._account.uid, self._account.gid)
        try:
            self._run_initdb(incomplete, password_file)
        finally:
            password_file.unlink()
        incomplete.rename(self.data_dir)

    def _run_initdb(self, data_dir: Path, password_file: Path) -> None:
        program = reachable_postgres(self._account) / "bin" / "initdb"
        argv = [str(program), "-D", str(data_dir), "-U", USER, f"--pwfile={password_file}"]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        account = as_account(self._account)
        done = subprocess.run(argv, cwd="/", capture_output=True, text=True, check=False, **account)
        if done.returncode != 0:
            raise EmbeddedError(f"PostgreSQL's data folder {data_dir} cannot be made:\n{done.stdout}{done.stderr}")
