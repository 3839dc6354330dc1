"""Which service listens where, and who is in the way."""

import socket
from dataclasses import dataclass

import psutil

from backend.embedded.errors import EmbeddedError

HOST = "127.0.0.1"
DEFAULT_BASE_PORT = 8600


@dataclass(frozen=True)
class Ports:
    """The ports of one installation, counted from a base."""

    base: int = DEFAULT_BASE_PORT

    def __post_init__(self) -> None:
        if not 1024 <= self.base <= 65_531:
            raise EmbeddedError(
                f"Port {self.base} is out of range: give --port (or FOREDECK_PORT) a base between 1024 and 65531."
            )

    @property
    def api(self) -> int:
        return self.base

    @property
    def postgres(self) -> int:
        return self.base + 1

    @property
    def valkey(self) -> int:
        return self.base + 2

    @property
    def ray_dashboard(self) -> int:
        return self.base + 3

    @property
    def ray_gcs(self) -> int:
        return self.base + 4


def is_free(port: int, host: str = HOST) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: TIME_WAIT is no obstacle
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


def require_free(service: str, port: int, host: str = HOST) -> None:
    """Raises EmbeddedError naming the service, the port and, where it may be known, its holder."""
    if is_free(port, host):
        return
    raise EmbeddedError(
        f"{service} cannot listen on {host}:{port}: {_holder(port)} is using the port. "
        "Stop that program, or choose other ports with `foredeck up --port BASE` or FOREDECK_PORT=BASE."
    )


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            is_here = connection.laddr and connection.laddr.port == port
            if is_here and connection.status == psutil.CONN_LISTEN and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except psutil.Error:
        pass  # the holder belongs to someone else: macOS does not tell
    return "another program"


def free_port(host: str = HOST) -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        return int(listener.getsockname()[1])
