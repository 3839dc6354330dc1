"""Ray on this machine, started when the launcher first asks for it.

The launcher creates `ray.wanted` in the handshake folder and reads `ray.json` there. Only holders of the token in the
file named there may use this Ray: its ports listen on all of the machine's addresses, whatever one tells it.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import httpx
import psutil

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.passwords import kept_password
from backend.embedded.ports import HOST, Ports, free_port, require_free
from backend.embedded.process import ServerProcess, wait_until_ready
from backend.embedded.records import ProcessRecord

OBJECT_STORE_BYTES = 200_000_000
START_TIMEOUT_S = 120.0
_NOT_FOR_JOBS = frozenset(
    {
        "DATABASE_URL",
        "REDIS_URL",
        "FOREDECK_TOKEN",
        "FOREDECK_RAY_TOKEN",
        "FOREDECK_OIDC_CLIENT_SECRET",
        "FOREDECK_ENCRYPTION_KEYS",
        "RAY_ADDRESS",
    }
)
_MAX_DIR_LENGTH = 40
"""Ray puts sockets some 62 characters deeper, and a socket's path holds 107."""


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


@dataclass(frozen=True)
class RayService:
    """A Ray head that runs on loopback as long as its `ray start --block` does."""

    home: Home
    ports: Ports
    source_dir: Path
    """Folder that holds the workers package."""
    name: str = "Ray"
    stop_signal: signal.Signals = signal.SIGTERM
    num_cpus: int = field(default_factory=usable_cpus)

    @property
    def port(self) -> int:
        return self.ports.ray_dashboard

    @property
    def log(self) -> Path:
        return self.home.logs / "ray.log"

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def token_path(self) -> Path:
        return self.home.ray_handshake / "token"

    @property
    def fingerprint(self) -> str:
        return sha256(" ".join([*self.argv(agent_port=0, client_port=0), sys.version]).encode()).hexdigest()

    @property
    def is_wanted(self) -> bool:
        return (self.home.ray_handshake / "ray.wanted").exists()

    def start(self, earlier: ProcessRecord | None = None) -> ServerProcess:
        """Starts it, or finds the earlier one. Raises EmbeddedError when a port is taken."""
        process = earlier.find() if earlier and earlier.fingerprint == self.fingerprint else None
        if process is None:
            if earlier is not None and (stale := earlier.find()) is not None:
                self.stop(stale)
            process = self._spawn()
        self._tell("starting", process)
        return process

    def wait(self, process: ServerProcess) -> None:
        """Waits for the job server and says in `ray.json` that it is there."""
        wait_until_ready(self.name, process, self.probe, self.log, START_TIMEOUT_S)
        self._tell("ready", process)

    def stop(self, process: ServerProcess) -> None:
        (self.home.ray_handshake / "ray.json").unlink(missing_ok=True)
        process.stop(self.stop_signal, timeout_s=10)
        self.end_leftovers()

    def end_leftovers(self) -> None:
        """Kills what outlived its Ray: its servers after a kill -9, and jobs, which run in sessions of their own."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("RAY_AUTH_TOKEN_PATH") == str(self.token_path):
                    process.kill()
            except psutil.Error:
                continue  # gone already, or somebody else's

    def forget(self) -> None:
        """Clears the handshake of a Ray that is gone."""
        for name in ("ray.json", "ray.wanted"):
            (self.home.ray_handshake / name).unlink(missing_ok=True)

    def probe(self) -> str | None:
        headers = {"Authorization": f"Bearer {kept_password(self.token_path)}"}
        try:
            answer = httpx.get(f"{self.address}/api/jobs/", headers=headers, timeout=5, trust_env=False)
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        return None if answer.is_success else f"HTTP {answer.status_code}"

    def argv(self, agent_port: int, client_port: int) -> list[str]:
        # Ray turns 127.0.0.1 into the machine's outer address, and breaks when a laptop changes its network.
        node = "127.0.0.2" if sys.platform == "linux" else HOST
        return [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats",
            f"--node-ip-address={node}", f"--port={self.ports.ray_gcs}",
            f"--dashboard-host={HOST}", f"--dashboard-port={self.ports.ray_dashboard}",
            f"--dashboard-agent-listen-port={agent_port}", f"--ray-client-server-port={client_port}",
            "--include-log-monitor=false",
            f"--num-cpus={self.num_cpus}", f"--object-store-memory={OBJECT_STORE_BYTES}", f"--temp-dir={self.temp_dir}",
        ]  # fmt: skip

    @property
    def temp_dir(self) -> Path:
        """Ray's sockets and logs; short, and so outside a home folder with a long name."""
        inside = self.home.root / "ray"
        if len(str(inside)) <= _MAX_DIR_LENGTH:
            return inside
        digest = sha256(str(self.home.root).encode()).hexdigest()[:8]
        return Path(tempfile.gettempdir()) / f"foredeck-{os.getuid()}-{digest}"

    def environment(self) -> dict[str, str]:
        """What Ray and so every job inherits: none of the service's own secrets."""
        inherited = {key: value for key, value in os.environ.items() if key not in _NOT_FOR_JOBS}
        own = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_path),
            "AUTOSCALER_METRIC_PORT": "-1",  # no metrics servers on fixed ports: a second Ray would meet the first
            "DASHBOARD_METRIC_PORT": "-1",
            "PYTHONPATH": os.pathsep.join([str(self.source_dir), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        return inherited | own

    def _spawn(self) -> ServerProcess:
        self.end_leftovers()
        require_free("Ray's job server", self.ports.ray_dashboard)
        require_free("Ray's control store", self.ports.ray_gcs)
        kept_password(self.token_path)
        self._clear_temp_dir()
        argv = self.argv(free_port(), free_port())
        return ServerProcess.spawn(argv, log=self.log, environment=self.environment(), directory=self.source_dir)

    def _clear_temp_dir(self) -> None:
        """Sessions of earlier starts are of no use to a new one."""
        shutil.rmtree(self.temp_dir, ignore_errors=True)
        try:
            self.temp_dir.mkdir(mode=0o700)
        except FileExistsError as error:
            raise EmbeddedError(f"Ray needs {self.temp_dir}, which someone else has made: remove it.") from error

    def _tell(self, state: str, process: ServerProcess) -> None:
        told = {"address": self.address, "pid": process.pid, "state": state, "token_path": str(self.token_path)}
        temporary = self.home.ray_handshake / "ray.json.new"
        temporary.write_text(json.dumps(told))
        temporary.replace(self.home.ray_handshake / "ray.json")
