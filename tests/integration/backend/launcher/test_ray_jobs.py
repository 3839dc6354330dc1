"""What is concluded from a job server's answers, whatever it is that answers: a real HTTP server says it."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from backend.launcher import ray_jobs
from backend.launcher.jobs import JobState, Node, RefusedError, SilentError, Submission, UnreachableError
from backend.launcher.ray_jobs import RayJobServer

TRACEBACK = "Traceback (most recent call last):\n  File ...\nTypeError: no such field"
JOB = Submission("run-1", "true", {}, {})


class Answers:
    """Answers by method and path: (status, body); a function writes the body itself."""

    def __init__(self):
        self.by_path = {}

    def write(self, request):
        status, body = self.by_path.get((request.command, request.path), (404, b"Job run-1 does not exist"))
        request.rfile.read(int(request.headers.get("Content-Length") or 0))
        request.send_response(status)
        request.end_headers()
        if callable(body):
            body(request.wfile)
        else:
            request.wfile.write(body)


@pytest.fixture
def answers():
    return Answers()


@pytest.fixture
def server(answers):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answers.write(self)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    with RayJobServer(f"http://127.0.0.1:{listener.server_address[1]}", None, 5) as server:
        yield server
    listener.shutdown()
    listener.server_close()
    thread.join()


def log_of(text):
    return 200, json.dumps({"logs": text}).encode()


LOGS = ("GET", "/api/jobs/run-1/logs")


def test_the_end_of_a_short_log(server, answers):
    answers.by_path[LOGS] = log_of('a\nb \\n "quoted" é\nc\n')
    assert server.log_tail("run-1", 2) == ['b \\n "quoted" é', "c"]


@pytest.mark.parametrize("size", range(60, 72))
def test_wherever_a_long_log_is_cut_whole_lines_come_back(server, answers, monkeypatch, size):
    monkeypatch.setattr(ray_jobs, "LOG_TAIL_BYTES", size)
    lines = [f'{n}\\n "é" \\' for n in range(100)]
    answers.by_path[LOGS] = log_of("\n".join(lines))
    tail = server.log_tail("run-1", 50)
    assert tail
    assert tail == lines[-len(tail) :]


def test_a_log_without_end_is_given_up(server, answers, monkeypatch):
    monkeypatch.setattr(ray_jobs, "MAX_LOG_BYTES", 10_000)
    answers.by_path[LOGS] = log_of("x" * 20_000)
    with pytest.raises(UnreachableError, match="more than 10000 bytes"):
        server.log_tail("run-1", 50)


@pytest.mark.parametrize("answer", [(500, TRACEBACK.encode()), (404, b"Job run-1 does not exist"), (200, b"\xff\xfe")])
def test_without_a_log_there_are_no_lines(server, answers, answer):
    answers.by_path[LOGS] = answer
    assert server.log_tail("run-1", 50) == []


def test_an_answer_that_drips_is_no_answer(answers, server):
    def drip(stream):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                stream.write(b" ")
            except OSError:
                return
            time.sleep(0.02)

    answers.by_path["GET", "/api/jobs/run-1"] = (200, drip)
    server._timeout_s = 0.5
    began = time.monotonic()
    with pytest.raises(SilentError, match="no whole answer"):
        server.get("run-1")
    assert time.monotonic() - began < 5


def test_only_rays_own_refusal_is_final(server, answers):
    answers.by_path["POST", "/api/jobs/"] = (400, TRACEBACK.encode())
    with pytest.raises(RefusedError, match="TypeError: no such field"):
        server.submit(JOB)
    for status, body in ((400, b"<html>Bad Request</html>"), (400, b""), (500, TRACEBACK.encode()), (302, b"")):
        answers.by_path["POST", "/api/jobs/"] = (status, body)
        with pytest.raises(UnreachableError):
            server.submit(JOB)


def test_a_404_of_something_in_between_proves_nothing(server, answers):
    assert server.get("run-1").state is JobState.MISSING
    answers.by_path["GET", "/api/jobs/run-1"] = (404, b"<html>Not Found</html>")
    with pytest.raises(UnreachableError):
        server.get("run-1")


@pytest.mark.parametrize("body", [b"\xff", b"[]", b"{}", b'{"status": "LOVELY"}', b'{"status": null}'])
def test_an_answer_of_another_kind_proves_nothing(server, answers, body):
    answers.by_path["GET", "/api/jobs/run-1"] = (200, body)
    with pytest.raises(UnreachableError):
        server.get("run-1")


@pytest.mark.parametrize(
    "usage", [None, [], {"CPU": None}, {"CPU": [1]}, {"CPU": ["x", "y"]}, {"CPU": [1, 2, 3]}, {"CPU": {"used": 1}}]
)
def test_resources_of_another_shape_are_unknown(server, answers, usage):
    status = {"data": {"clusterStatus": {"loadMetricsReport": {"usage": usage}}}}
    answers.by_path["GET", "/api/cluster_status"] = (200, json.dumps(status).encode())
    assert server.resources() == {}


def test_resources(server, answers):
    usage = {"CPU": [1, 8], "accelerator_type:H200": [0, 1], "node:10.0.0.1": [0, 1]}
    status = {"data": {"clusterStatus": {"loadMetricsReport": {"usage": usage}}}}
    answers.by_path["GET", "/api/cluster_status"] = (200, json.dumps(status).encode())
    assert server.resources() == {"CPU": (1, 8), "accelerator_type:H200": (0, 1)}


def _status(types, usage_by_node):
    report = {"loadMetricsReport": {"usage": {}, "usageByNode": usage_by_node}}
    report["autoscalerReport"] = {"nodeTypeMapping": types}
    return 200, json.dumps({"data": {"clusterStatus": report}}).encode()


def test_nodes(server, answers):
    """As Ray 2.60 tells them of machines that were started by hand."""
    usage = {"a1": {"CPU": [1, 8], "GPU": [1.5, 8]}, "b2": {"CPU": [0, 64]}}
    answers.by_path["GET", "/api/cluster_status"] = _status({"a1": "node_a1", "b2": "node_b2"}, usage)
    assert server.nodes() == [Node(8, 6.5), Node(0, 0)]


@pytest.mark.parametrize(
    ("types", "usage"),
    [
        ({"a1": "ray.worker.gpu"}, {"a1": {"GPU": [0, 8]}}),  # more may come
        ({}, {}),
        (None, None),
        ({"a1": "node_a1"}, {"a1": {"GPU": 8}}),
    ],
)
def test_nodes_that_are_not_all_known_are_unknown(server, answers, types, usage):
    answers.by_path["GET", "/api/cluster_status"] = _status(types, usage)
    assert server.nodes() is None
    answers.by_path["GET", "/api/cluster_status"] = (200, b'{"data": {"clusterStatus": null}}')
    assert server.nodes() is None
    assert server.resources() == {}


@pytest.mark.parametrize("address", ["http://host:abc", "http://[::1", "http://\u202e.com"])
def test_an_address_that_is_none_gives_no_answer(address):
    with pytest.raises(SilentError, match="no answer from"):
        RayJobServer(address, None, 1)


def test_nothing_in_the_environment_ends_a_single_quote(server, answers):
    """Ray 2.60 writes `--env NAME='value'` into a shell command where the job is in a container."""
    sent = []
    answers.by_path["POST", "/api/jobs/"] = (200, b"{}")
    server._http.event_hooks["request"] = [lambda request: sent.append(json.loads(request.content))]
    name = "it's'; touch /tmp/mine; '\\"
    server.submit(Submission("run-1", "true", {"A": json.dumps({"name": name})}, {}))
    (value,) = sent[0]["runtime_env"]["env_vars"].values()
    assert "'" not in value
    assert json.loads(value) == {"name": name}
