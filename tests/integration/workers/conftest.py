"""A real HTTP server that takes events as the control plane does, and can go away and come back."""

import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from contract.telemetry.events import Acknowledgement, IngestRequest, IngestResponse, WorkerToken
from tests.ports import free_base_port

TOKEN_PATH = "/api/v1/ingest/token"


class IngestServer:
    """Stores each event once by (attempt, emitter, seq); counts how often events arrived again."""

    def __init__(self):
        self.events = defaultdict(dict)
        self.num_repeated = 0
        self.current_attempt = 1
        self.is_stop_requested = False
        self.refuse = lambda event: False
        self.drop_answers = 0
        self.drop_tokens = 0
        self.tokens = defaultdict(list)
        self.worn = set()
        self.refused_paths = ()
        self.refusal = 401
        self.num_requests = 0
        self.refusal_content = b"{}"
        self.changed = threading.Condition()
        self._port = free_base_port()
        self._server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def up(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def down(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def of(self, attempt=1):
        """Events of an attempt in the order of seq."""
        with self.changed:
            return [event for _, event in sorted(self.events[attempt, "driver/0"].items())]

    def bodies(self, kind, attempt=1):
        return [event.body for event in self.of(attempt) if event.body.kind == kind]

    def wait_for(self, condition, timeout_s=30):
        """Wait until the condition holds, which is asked again after every batch."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), "the server did not receive what the test waits for"

    def wait_for_requests(self, count, timeout_s=30):
        """Wait for so many more requests, whatever their answers."""
        goal = self.num_requests + count
        self.wait_for(lambda: self.num_requests >= goal, timeout_s)

    def is_good(self, token, path):
        """A starter until somebody has reported with what it was exchanged for; of that, the last one."""
        assert path in {TOKEN_PATH, "/api/v1/ingest"}
        with self.changed:
            starter = token.partition("/")[0]
            if path == TOKEN_PATH:
                return token not in self.worn and "/" not in token
            if token not in self.tokens[starter][-1:]:
                return False
            self.worn.add(starter)
            return True

    def exchange(self, starter):
        with self.changed:
            self.tokens[starter].append(f"{starter}/{len(self.tokens[starter]) + 1}")
            return WorkerToken(token=self.tokens[starter][-1])

    def take(self, request):
        with self.changed:
            for event in request.events:
                stored = self.events[event.attempt, event.emitter]
                self.num_repeated += event.seq in stored
                if event.seq == len(stored) + 1:  # nothing is stored behind a gap
                    stored[event.seq] = event
            self.changed.notify_all()
            return IngestResponse(
                acknowledged=[self._acknowledge(*key) for key in {(e.attempt, e.emitter) for e in request.events}],
                current_attempt=self.current_attempt,
                is_stop_requested=self.is_stop_requested,
            )

    def _acknowledge(self, attempt, emitter):
        return Acknowledgement(attempt=attempt, emitter=emitter, seq=len(self.events[attempt, emitter]))

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with server.changed:
                    server.num_requests += 1
                    server.changed.notify_all()
                token = self.headers["Authorization"].removeprefix("Bearer ")
                if self.path in server.refused_paths or not server.is_good(token, self.path):
                    return self.answer(server.refusal, server.refusal_content)
                if self.path == TOKEN_PATH:
                    return self.answer_unless("drop_tokens", server.exchange(token))
                request = IngestRequest.model_validate_json(body)
                if any(map(server.refuse, request.events)):
                    return self.answer(422, b"{}")
                return self.answer_unless("drop_answers", server.take(request))

            def answer_unless(self, dropped, answer):
                if left := getattr(server, dropped):
                    setattr(server, dropped, left - 1)
                    return self.answer(500, b"{}")
                return self.answer(200, answer.model_dump_json().encode())

            def answer(self, status, content):
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        return Handler


@pytest.fixture
def ingest_server():
    server = IngestServer()
    server.up()
    yield server
    server.down()
