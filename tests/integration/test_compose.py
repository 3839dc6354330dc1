"""docker-compose.yml without a container engine: its rules, and its commands and health checks run natively."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from backend.embedded.binaries import postgres_installation, valkey_server
from backend.embedded.postgres import PostgresServer
from backend.embedded.process import ServerProcess, last_lines
from tests.ports import free_base_port

REPOSITORY = Path(__file__).parents[2]
SECRETS = {"POSTGRES_PASSWORD": "pw-postgres", "REDIS_PASSWORD": "pw-redis", "RAY_AUTH_TOKEN": "t" * 40}
ONE_SHOT = {"migrate"}


def _text() -> str:
    return (REPOSITORY / "docker-compose.yml").read_text()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load(_text())


def test_the_cluster_is_complete(compose: dict[str, Any]) -> None:
    expected = {"postgres", "redis", "migrate", "api", "worker", "beat", "ray-head", "ray-worker"}
    assert set(compose["services"]) == expected


def test_every_service_that_stays_has_a_health_check(compose: dict[str, Any]) -> None:
    without = {name for name, service in compose["services"].items() if "healthcheck" not in service}
    assert without == ONE_SHOT


def test_dependants_wait_until_what_they_need_works(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, condition in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if name in ONE_SHOT else "service_healthy"
            assert condition == {"condition": wanted}


def test_volumes_and_networks_that_are_used_are_declared(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= set(compose["volumes"])
        assert set(service["networks"]) <= set(compose["networks"])


def test_no_password_has_a_default_and_no_port_is_open_to_others(compose: dict[str, Any]) -> None:
    for variable in SECRETS:
        uses = re.findall(rf"(?<!\$)\${{?{variable}\b[^}}]*}}?", _text())
        assert uses
        assert all(use.startswith(f"${{{variable}:?") for use in uses), uses
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_image_gets_every_file_that_it_copies() -> None:
    let_in = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in (REPOSITORY / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (REPOSITORY / source).exists(), source
                assert source.split("/")[0] in let_in, source


class Native:
    """The services of the file as processes of this machine: hosts, ports and folders rewritten, nothing else."""

    def __init__(self, compose: dict[str, Any], folder: Path, server: PostgresServer, database_url: str) -> None:
        self._services = compose["services"]
        self._folder = folder
        self._tmp = folder / "tmp"
        (folder / "data").mkdir()
        self._tmp.mkdir()
        base = free_base_port()
        self.redis, self.api, self.gcs, self.jobs = range(base, base + 4)
        address = database_url.removeprefix("postgresql+psycopg")
        self._rewrites = {
            f"postgresql://foredeck:{SECRETS['POSTGRES_PASSWORD']}@postgres:5432/foredeck": f"postgresql{address}",
            "@redis:6379": f"@127.0.0.1:{self.redis}",
            "ray-head:6379": f"127.0.0.2:{self.gcs}",
            "ray-head:8265": f"127.0.0.1:{self.jobs}",
            "127.0.0.1:6379": f"127.0.0.2:{self.gcs}",
            "--port=6379": f"--port={self.gcs}",
            "--port=5432": f"--port={server.port}",
            "8265": str(self.jobs),
            "6379": str(self.redis),
            "8600": str(self.api),
            "0.0.0.0": "127.0.0.1",
            "/storage": str(folder),
            "/data": str(folder / "data"),
            "/tmp/beat-schedule": str(folder / "beat-schedule"),
        }

    def _rewritten(self, text: str) -> str:
        for variable, value in SECRETS.items():
            text = re.sub(rf"\${{{variable}:\?[^}}]*}}", value, text)
        text = re.sub(r"\${\w+:-([^}]*)}", r"\1", text)
        # In one pass: what has been put in may hold any digits itself.
        known = sorted(self._rewrites, key=len, reverse=True)
        text = re.sub("|".join(map(re.escape, known)), lambda found: self._rewrites[found[0]], text)
        return text.replace("$$", "$")

    def environment(self, name: str) -> dict[str, str]:
        own = {key: self._rewritten(value) for key, value in self._services[name].get("environment", {}).items()}
        path = [str(self._folder / "bin"), str(Path(sys.executable).parent), str(postgres_installation() / "bin")]
        kept = {key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ}
        private = self._tmp / name
        private.mkdir(exist_ok=True)
        return kept | own | {"PATH": ":".join([*path, os.environ["PATH"]]), "TMPDIR": str(private)}

    def command(self, name: str) -> list[str]:
        return [self._rewritten(part) for part in self._services[name]["command"]]

    def health_check(self, name: str) -> list[str]:
        kind, *command = self._services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return [self._rewritten(part) for part in command]

    def allowed_s(self, name: str) -> float:
        """Seconds after which a health check has failed."""
        return float(self._services[name]["healthcheck"]["timeout"].removesuffix("s"))

    def run(self, name: str) -> None:
        done = subprocess.run(
            self.command(name), env=self.environment(name), cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def serving(self, name: str, *more: str) -> Iterator[None]:
        """Runs the service; inside the block it is healthy by its own check."""
        log = self._folder / f"{name}.log"
        argv = self.command(name) + list(more)
        argv[0] = shutil.which(argv[0], path=self.environment(name)["PATH"]) or argv[0]
        process = ServerProcess.spawn(argv, log=log, environment=self.environment(name), directory=REPOSITORY)
        try:
            self._await_health(name, process, log)
            yield
        finally:
            process.stop(timeout_s=15)

    def _await_health(self, name: str, process: ServerProcess, log: Path) -> None:
        deadline = time.monotonic() + 150
        while not self.is_healthy(name):
            assert process.is_alive(), last_lines(log)
            assert time.monotonic() < deadline, f"{name} is not healthy: {last_lines(log)}"
            threading.Event().wait(0.3)

    def is_healthy(self, name: str, timeout_s: float = 60) -> bool:
        check = self.health_check(name)
        try:
            done = subprocess.run(
                check, env=self.environment(name), cwd=REPOSITORY, capture_output=True, check=False, timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


@pytest.fixture
def native(compose: dict[str, Any], postgres_server: PostgresServer, database_url: str) -> Iterator[Native]:
    folder = Path(tempfile.mkdtemp(prefix="fdk-"))
    (folder / "bin").mkdir()
    (folder / "bin" / "redis-server").symlink_to(valkey_server())
    # The image of Redis brings redis-cli; where this machine has none, the same question is asked in Python.
    if shutil.which("redis-cli") is None:
        stand_in = folder / "bin" / "redis-cli"
        stand_in.write_text(
            f"#!{sys.executable}\nimport os, redis, sys\n"
            "client = redis.Redis(port=int(sys.argv[2]), password=os.environ['REDISCLI_AUTH'])\n"
            "assert sys.argv[1] == '-p' and sys.argv[3] == 'ping' and client.ping()\n"
        )
        stand_in.chmod(0o755)
    yield Native(compose, folder, postgres_server, database_url)
    shutil.rmtree(folder)


def test_the_control_plane_gets_healthy_by_its_own_commands(native: Native) -> None:
    assert native.is_healthy("postgres")
    with ExitStack() as stack:
        assert not native.is_healthy("redis")
        stack.enter_context(native.serving("redis"))
        native.run("migrate")
        for name in ("api", "worker", "beat"):
            assert not native.is_healthy(name)
        # The worker is healthy only once beat sends it work, so both start before either is asked.
        stack.enter_context(native.serving("beat"))
        stack.enter_context(native.serving("worker"))
        stack.enter_context(native.serving("api"))


@pytest.mark.skipif(sys.platform != "linux", reason="two Ray nodes need two loopback addresses")
def test_ray_head_and_worker_get_healthy_by_their_own_commands(native: Native) -> None:
    small = ["--num-cpus=1", "--object-store-memory=100000000"]
    apart = [f"--dashboard-agent-listen-port={free_base_port()}", f"--ray-client-server-port={free_base_port()}"]
    with ExitStack() as stack:
        assert not native.is_healthy("ray-head", native.allowed_s("ray-head"))
        temp_dir = f"--temp-dir={native._folder}/r"
        stack.enter_context(native.serving("ray-head", "--node-ip-address=127.0.0.2", temp_dir, *small, *apart))
        elsewhere = [f"--dashboard-agent-listen-port={free_base_port()}", "--node-ip-address=127.0.0.3"]
        stack.enter_context(native.serving("ray-worker", *elsewhere, *small))
