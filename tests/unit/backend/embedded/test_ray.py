import json
import os
import stat
import sys
from pathlib import Path

import pytest

from backend.embedded.home import Home
from backend.embedded.ports import Ports
from backend.embedded.process import ServerProcess
from backend.embedded.ray import RayService
from backend.settings import Settings


@pytest.fixture
def ray(tmp_path: Path) -> RayService:
    home = Home(tmp_path)
    home.create()
    return RayService(home, Ports(9000), tmp_path, num_cpus=2)


def test_it_listens_where_the_ports_say_and_asks_for_a_token(ray: RayService) -> None:
    argv = ray.argv(agent_port=1111, client_port=2222)
    assert {"--dashboard-port=9003", "--port=9004", "--dashboard-host=127.0.0.1", "--num-cpus=2"} <= set(argv)
    assert ray.environment()["RAY_AUTH_MODE"] == "token"


def test_jobs_inherit_none_of_the_services_secrets(ray: RayService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter2@h/d")
    monkeypatch.setenv("FOREDECK_TOKEN", "fdk_hunter2")
    secrets = [field.alias for field in Settings.model_fields.values() if not field.repr and field.alias]
    assert "FOREDECK_ENCRYPTION_KEYS" in secrets
    for name in secrets:
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy")
    environment = ray.environment()
    assert "hunter2" not in json.dumps(environment)
    assert environment["HTTP_PROXY"] == "http://proxy"


@pytest.mark.parametrize("name", ["h", "h" * 60])
def test_sockets_fit_into_their_longest_path(name: str) -> None:
    ray = RayService(Home(Path("/tmp") / name), Ports(9000), Path())
    socket = ray.temp_dir / "session_2026-01-01_00-00-00_000000_1000000" / "sockets" / "plasma_store"
    assert len(str(socket)) <= 107


def test_it_is_wanted_when_the_launcher_says_so_and_forgotten_after(ray: RayService) -> None:
    assert not ray.is_wanted
    (ray.home.ray_handshake / "ray.wanted").touch()
    assert ray.is_wanted
    ray.forget()
    assert not ray.is_wanted


def test_what_outlives_ray_is_ended_and_nothing_else(ray: RayService, tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(1000)"]
    log = tmp_path / "log"
    orphan = ServerProcess.spawn(sleep, log=log, environment=ray.environment())
    stranger = ServerProcess.spawn(sleep, log=log, environment=ray.environment() | {"RAY_AUTH_TOKEN_PATH": "/other"})
    ray.end_leftovers()
    orphan.stop()
    assert orphan.exit_code == -9
    assert stranger.is_alive()
    stranger.stop()


def test_only_its_owner_reads_the_token(ray: RayService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerProcess, "spawn", lambda *_, **__: ServerProcess.find(os.getpid()))
    ray.start()
    assert stat.S_IMODE(ray.token_path.stat().st_mode) == 0o600
    told = json.loads((ray.home.ray_handshake / "ray.json").read_text())
    assert told == {
        "address": "http://127.0.0.1:9003",
        "pid": os.getpid(),
        "state": "starting",
        "token_path": str(ray.token_path),
    }
