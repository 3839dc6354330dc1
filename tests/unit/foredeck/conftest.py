import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest

from foredeck import Foredeck

RUN_ID = UUID("11111111-2222-4333-8444-555555555555")


@dataclass
class Asked:
    """A request that the server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """A real HTTP server that answers (status, headers, body) as told; the last answer stands for all that follow. A
    status of 0 breaks the connection."""

    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Iterator[Scripted]:
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            script.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            status, headers, text = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            if status == 0:
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, *_: Any) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{served.server_address[1]}"
    thread = threading.Thread(target=served.serve_forever, args=(0.01,))
    thread.start()
    yield script
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.fixture
def service(server: Scripted) -> Iterator[Foredeck]:
    """A client of that server, whose pauses are short."""
    with Foredeck(server.url, "fdk_x", patience_s=5, first_pause_s=0.001) as service:
        yield service


@pytest.fixture
def run_body() -> Callable[..., dict[str, Any]]:
    """A run as the service answers it, with a key that the client does not know."""

    def make(**fields: Any) -> dict[str, Any]:
        base = {
            "id": str(RUN_ID), "name": "eagle3 k=3", "status": "running", "is_ended": False, "cluster": "local",
            "step": 7, "num_steps": 40, "current_attempt": 1, "created_at": "2026-01-01T00:00:00Z", "config": {},
            "config_sha256": "ab" * 32, "new_key": 1,
        }  # fmt: skip
        return base | fields

    return make
