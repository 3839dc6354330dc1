import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from backend.launcher.connect import Target, connector
from backend.launcher.jobs import UnreachableError
from backend.settings import Settings


class Ray(BaseHTTPRequestHandler):
    """Answers its version and remembers who asked with what."""

    def do_GET(self):
        self.server.seen.append(self.headers.get("Authorization"))
        body = b'{"version": "4", "ray_version": "2.60.0", "ray_commit": "x"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def ray():
    server = HTTPServer(("127.0.0.1", 0), Ray)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_token_goes_to_the_address_that_it_is_meant_for_and_to_no_other(ray):
    address = f"http://127.0.0.1:{ray.server_port}"
    for ray_address in (address, "http://127.0.0.1:1"):
        settings = Settings.model_validate(
            {"DATABASE_URL": "postgresql://x", "RAY_ADDRESS": ray_address, "FOREDECK_RAY_TOKEN": "of the local one"}
        )
        with connector(settings)(Target("registered", address), False) as server:
            assert server.version() == "2.60.0"
    assert ray.seen == ["Bearer of the local one", None]


def test_a_registered_cluster_has_a_token_of_its_own(ray, tmp_path):
    (tmp_path / "east").write_text("of the east\n")
    settings = Settings.model_validate(
        {
            "DATABASE_URL": "postgresql://x",
            "RAY_ADDRESS": "http://127.0.0.1:1",
            "FOREDECK_RAY_TOKEN": "of the local one",
            "FOREDECK_RAY_TOKENS_DIR": str(tmp_path),
        }
    )
    for name in ("east", "west"):
        with connector(settings)(Target(name, f"http://127.0.0.1:{ray.server_port}"), False) as server:
            server.version()
    assert ray.seen == ["Bearer of the east", None]


def test_a_token_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "east").mkdir()
    settings = Settings.model_validate({"DATABASE_URL": "postgresql://x", "FOREDECK_RAY_TOKENS_DIR": str(tmp_path)})
    with pytest.raises(UnreachableError, match="token of cluster east"):
        connector(settings)(Target("east", "http://127.0.0.1:1"), False)
