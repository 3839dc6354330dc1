"""The service as `foredeck up` runs it, in a process of its own, spoken to as an attacker would: byte by byte."""

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from backend import bootstrap
from backend.auth.service import issue_user_token, issue_worker_token
from backend.db import Database
from backend.embedded import application
from backend.embedded.home import Home
from backend.embedded.ports import HOST, Ports
from backend.settings import Settings, load
from tests.ports import free_base_port

BODY_TIMEOUT_S = 2
PATIENCE_S = 20
"""Whatever takes longer counts as hanging."""
SECRET = "outside-of-the-dashboard"
RATE_LIMITS = [
    "FOREDECK_RATE_LIMIT",
    "FOREDECK_INGEST_RATE_LIMIT",
    "FOREDECK_STRANGER_RATE_LIMIT",
    "FOREDECK_LOGIN_RATE_LIMIT",
]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_problem(self) -> bool:
        return self.headers.get("content-type") == "application/problem+json"


@dataclass(frozen=True)
class Service:
    settings: Settings
    database: Database
    ports: Ports
    token: str
    log: Path

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.ports.api}"

    @property
    def bearer(self) -> str:
        return f"Bearer {self.token}"

    def client(self, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=PATIENCE_S, trust_env=False)

    def worker_token(self, run_id: str) -> str:
        with self.database.transaction() as session:
            return issue_worker_token(session, run_id)

    def send(self, *parts: bytes) -> Answer:
        """Sends bytes as they are and reads the answer to its end. A dropped connection is status 0."""
        with socket.create_connection((HOST, self.ports.api), timeout=PATIENCE_S) as connection:
            try:
                for part in parts:
                    connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has answered already
            return _answer(connection)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """A request with the administrator's token, unless told otherwise."""
        given = {"Host": "foredeck", "Connection": "close", "Authorization": self.bearer}
        if body:
            given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


def _answer(connection: socket.socket) -> Answer:
    received = b""
    while not _is_whole(received):
        try:
            chunk = connection.recv(65_536)
        except ConnectionResetError:
            break
        if not chunk:
            break
        received += chunk
    if not received:
        return Answer(0, {}, b"")
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


def _is_whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    return bool(end and length and len(body) >= int(length[1]))


@pytest.fixture(scope="module")
def frontend_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dashboard, with secrets beside it that nobody may get."""
    root = tmp_path_factory.mktemp("frontend")
    for folder in (root / "dist" / "assets", root / "dist-private"):
        folder.mkdir(parents=True)
    (root / "dist" / "index.html").write_text("<!doctype html><title>Foredeck</title>")
    (root / "dist" / "assets" / "app.js").write_text("// the dashboard")
    for secret in (root / "secret.txt", root / "dist-private" / "secret.txt"):
        secret.write_text(SECRET)
    (root / "dist" / "assets" / "link.txt").symlink_to(root / "secret.txt")
    return root / "dist"


@pytest.fixture(scope="module")
def service(module_database_url, valkey_server, redis_databases, frontend_dir, tmp_path_factory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("home")
    home, ports = Home(root), Ports(free_base_port())
    home.logs.mkdir(parents=True, exist_ok=True)
    own = {
        "FOREDECK_FRONTEND_DIR": str(frontend_dir),
        "FOREDECK_BODY_TIMEOUT_S": str(BODY_TIMEOUT_S),
        # Attacks come at full speed here: that they are slowed down is tested in ../rate_limit.
        **dict.fromkeys(RATE_LIMITS, "1000000"),
    }
    redis_url = valkey_server.url_of(next(redis_databases))
    surroundings = application.environment(dict(os.environ) | own, home, ports, module_database_url, redis_url)
    settings = load(surroundings)
    database = Database(settings)
    with database.transaction() as session:
        token = issue_user_token(session, bootstrap.ensure(session, settings), "test", ["admin"])
    api = application.api(surroundings, home, ports)
    process = api.start()
    try:
        api.wait(process)
        yield Service(settings, database, ports, token, api.log)
    finally:
        api.stop(process)
        database.close()


@pytest.fixture
def run_id(service: Service) -> str:
    """A run of the service's, waiting in its queue."""
    with service.client() as client:
        body = {"name": "test", "config": {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}}
        return client.post("/runs", json=body).raise_for_status().json()["id"]
