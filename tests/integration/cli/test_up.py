"""`foredeck up`, `status` and `down` with the real parts."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.ports import free_base_port

SERVICES = ("PostgreSQL", "Valkey", "API", "Worker", "Scheduler")


def _wait(condition, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.1)


def test_status_shows_what_runs_where_and_in_how_much_memory(installation) -> None:
    status = installation.json_of("status")
    assert status["is_ready"]
    assert status["url"] == installation.url
    ports = {process["name"]: process["port"] for process in status["processes"] if process["name"] in SERVICES}
    base = installation.base_port
    assert ports == {"API": base, "PostgreSQL": base + 1, "Valkey": base + 2, "Worker": None, "Scheduler": None}
    assert all(process["is_running"] for process in status["processes"])
    without_ray = sum(each["memory_bytes"] for each in status["processes"] if each["name"] != "Ray")
    assert without_ray + status["supervisor_memory_bytes"] < 500e6


def test_the_table_is_readable(installation) -> None:
    text = installation.foredeck("status").stdout
    assert f"Foredeck is up at {installation.url}" in text
    for name in SERVICES:
        assert name in text


def test_secrets_are_private(installation) -> None:
    for name in ("credentials.json", "postgres.password", "valkey.password"):
        assert stat.S_IMODE((installation.home.root / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(installation.home.root.stat().st_mode) == 0o700


def test_login_prints_a_link_that_works_once(installation) -> None:
    url = installation.foredeck("login").stdout.strip()
    address, code = url.split("/login#code=")
    assert address == installation.url
    with httpx.Client(base_url=f"{installation.url}/api/v1", trust_env=False) as browser:
        assert browser.post("/session", json={"code": code}).status_code == 200
        assert browser.get("/session").status_code == 200
    with httpx.Client(base_url=f"{installation.url}/api/v1", trust_env=False) as another:
        assert another.post("/session", json={"code": code}).status_code == 401


def test_a_token_has_only_its_scopes(installation) -> None:
    token = installation.json_of("token", "create", "ci", "--scope", "read")["token"]
    environment = installation.environment | {"FOREDECK_URL": installation.url, "FOREDECK_TOKEN": token}
    argv = [sys.executable, "-m", "cli.main"]
    allowed = subprocess.run([*argv, "runs"], env=environment, capture_output=True, check=False)
    refused = subprocess.run([*argv, "token", "create", "x"], env=environment, capture_output=True, check=False)
    assert allowed.returncode == 0
    assert refused.returncode == 2


def test_wrong_configuration_is_told_field_by_field(installation) -> None:
    wrong = ["--set", "grpo.num_steps=0", "--set", "policy.hidden_size=63", "--set", "typo=1"]
    done = installation.foredeck("launch", "examples/smoke.yaml", *wrong)
    assert done.returncode == 2
    assert "config.grpo.num_steps = 0: " in done.stderr
    assert "config.typo" in done.stderr


def test_a_second_supervisor_is_refused(installation) -> None:
    done = installation.foredeck("up", "--port", "31000")
    assert done.returncode == 5
    assert f"already runs on {installation.home.root} (process {installation.supervisor_pid()})" in done.stderr
    assert "foredeck down" in done.stderr


@pytest.mark.parametrize("name", ["API", "Worker", "Valkey", "PostgreSQL"])
def test_a_killed_child_comes_back(installation, name: str) -> None:
    first = installation.process(name)
    os.kill(first.pid, signal.SIGKILL)
    _wait(lambda: (found := installation.process(name)) is not None and found.pid != first.pid)

    def is_ready() -> bool:
        try:
            checks = httpx.get(f"{installation.url}/api/v1/ready", timeout=5, trust_env=False).json()["checks"]
        except (httpx.HTTPError, KeyError):
            return False
        return set(checks.values()) == {"ok"}

    _wait(is_ready)
    assert installation.foredeck("runs").returncode == 0


def test_children_of_a_killed_supervisor_are_adopted(installation) -> None:
    before = {name: installation.process(name).pid for name in SERVICES}
    supervisor = installation.supervisor_pid()
    os.kill(supervisor, signal.SIGKILL)
    _wait(lambda: not psutil.pid_exists(supervisor))
    assert "the supervisor is gone" in installation.foredeck("status").stdout.lower()
    installation.up()
    assert {name: installation.process(name).pid for name in SERVICES} == before


def test_a_taken_port_is_named(tmp_path: Path, installation) -> None:
    environment = installation.environment | {"FOREDECK_HOME": str(tmp_path / "home")}
    base = free_base_port()
    with socket.create_server(("127.0.0.1", base + 2)):
        argv = [sys.executable, "-m", "cli.main", "up", "--port", str(base)]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 5
    assert f"Valkey cannot listen on 127.0.0.1:{base + 2}" in done.stderr
    assert "--port BASE" in done.stderr
    left = [each for each in psutil.process_iter() if _belongs_to(each, tmp_path)]
    assert left == []


def _belongs_to(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_all_children_die_with_ctrl_c(tmp_path: Path, installation, postgres_server, database_url, redis_url) -> None:
    """On servers of the user's own, which stay."""
    environment = installation.environment | {
        "FOREDECK_HOME": str(tmp_path / "home"),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
    }
    argv = [sys.executable, "-m", "cli.main", "up", "--port", str(free_base_port())]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as up:
        assert up.stdout is not None
        for line in up.stdout:
            if "Ctrl-C ends everything" in line:
                break
        records = json.loads((tmp_path / "home" / "processes.json").read_text())["processes"]
        assert [record["name"] for record in records if record["name"] in {"PostgreSQL", "Valkey"}] == []
        assert len(records) == 3
        os.killpg(up.pid, signal.SIGINT)
        up.stdout.read()
    assert up.returncode == 0
    assert not any(psutil.pid_exists(record["pid"]) for record in records)
    assert postgres_server.probe() is None
