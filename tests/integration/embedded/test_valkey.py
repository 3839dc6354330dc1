"""The real Valkey from the wheel."""

import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from backend.embedded.errors import EmbeddedError
from backend.embedded.valkey import ValkeyServer
from tests.ports import free_base_port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(tmp_path, free_base_port())
    yield server
    if (process := server.find()) is not None:
        server.stop(process)


def test_data_survives_kill_9(server: ValkeyServer) -> None:
    process = server.start()
    with redis.Redis.from_url(server.url) as client:
        client.set("kept", "yes")
        client.execute_command("WAITAOF", 1, 0, 5000)
    process.stop(signal.SIGKILL)
    again = server.start()
    assert again.pid != process.pid
    with redis.Redis.from_url(server.url) as client:
        assert client.get("kept") == b"yes"


def test_a_running_server_is_found_again(server: ValkeyServer, tmp_path: Path) -> None:
    process = server.start()
    assert ValkeyServer(tmp_path, server.port).start().pid == process.pid


def test_it_moves_when_the_port_changes(server: ValkeyServer, tmp_path: Path) -> None:
    process = server.start()
    moved = ValkeyServer(tmp_path, free_base_port())
    new = moved.start()
    assert not process.is_alive()
    assert moved.probe() is None
    moved.stop(new)


def test_only_the_password_opens_it_and_ps_does_not_show_it(server: ValkeyServer, tmp_path: Path) -> None:
    process = server.start()
    password = (tmp_path / "valkey.password").read_text()
    with (
        redis.Redis(host="127.0.0.1", port=server.port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()
    assert password not in " ".join(psutil.Process(process.pid).cmdline())
    assert stat.S_IMODE((tmp_path / "valkey" / "valkey.conf").stat().st_mode) == 0o600
    listening = {each.laddr.ip for each in psutil.Process(process.pid).net_connections() if each.status == "LISTEN"}
    assert listening == {"127.0.0.1"}


def test_a_taken_port_is_named(tmp_path: Path, valkey_server: ValkeyServer) -> None:
    with pytest.raises(EmbeddedError, match=rf"Valkey cannot listen on 127.0.0.1:{valkey_server.port}"):
        ValkeyServer(tmp_path, valkey_server.port).start()
