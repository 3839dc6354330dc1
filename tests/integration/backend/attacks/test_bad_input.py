"""Whatever is sent, the answer is a 4xx problem document: never a 5xx, never silence."""

import gzip
import json
import time
from http import HTTPStatus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.auth.gate import MAX_BODY_BYTES

RUNS = "/api/v1/runs"
NOBODY = "/api/v1/runs/0b9c1d9e-0000-4000-8000-000000000000"


def deep(depth: int, around: str = "") -> bytes:
    nested = '{"a":' * depth + "1" + "}" * depth
    return (f'{{"{around}":{nested}}}' if around else nested).encode()


def run(**fields: object) -> bytes:
    return json.dumps({"name": "x", "config": {}} | fields).encode()


BODIES = {
    "no JSON": b'{"name": ',
    "no object": b"[]",
    "null": b"null",
    "no UTF-8": b'{"name": "\xff"}',
    "lists in lists": b"[" * 500_000,
    "objects in objects": deep(100_000),
    "objects as deep as the parser takes": deep(900, "config"),
    "objects as deep as Python takes": deep(450, "config"),
    "NaN": b'{"name": "x", "config": {"rollout": {"temperature": NaN}}}',
    "Infinity": b'{"name": "x", "config": {"rollout": {"temperature": -Infinity}}}',
    "too large a number": b'{"name": "x", "config": {"rollout": {"temperature": 1e999}}}',
    "too many digits": b'{"name": "x", "config": {"seed": ' + b"9" * 5000 + b"}}",
    "a truth for a number": run(max_attempts=True),
    "a text for a number": run(max_attempts="3"),
    "a number for a text": run(name=3),
    "an object for a text": run(name={"a": 1}),
    "a list for an object": run(config=[]),
    "a key that is not known": run(nmae="x"),
    "a key far inside that is not known": run(config={"grpo": {"num_step": 3}}),
    "NUL in a name": run(name="a\x00b"),
    "NUL in notes": run(notes="\x00"),
    "NUL in a label": run(labels={"a": "\x00"}),
    "NUL in a path": run(config={"policy": {"kind": "checkpoint", "path": "/a\x00b"}}),
    "half a character in a name": run(name="a\ud800"),
    "half a character in notes": run(notes="\udfff"),
    "half a character in a label": run(labels={"a": "\udfff"}),
    "half a character in a key": b'{"\\ud800": 1}',
    "half a character in a key of the configuration": b'{"name": "x", "config": {"\\ud800": 1}}',
    "half a character in a cluster": run(cluster="\ud800"),
    "half a character in a project": run(project="\ud800"),
    "too long a name": run(name="x" * 121),
    "too many labels": run(labels={f"k{index}": "" for index in range(33)}),
    "a line end in a name": run(name="a\nb"),
    "a terminal's commands in a name": run(name="\x1b[2J"),
    "text turned round in a name": run(name="abc\u202edcba"),
    "a time without a zone": b'{"name": "x", "scopes": ["read"], "expires_at": "2030-01-01T00:00:00"}',
    "a time beyond all calendars": b'{"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-23:59"}',
    "a number for a time": b'{"name": "x", "scopes": ["read"], "expires_at": 1e308}',
}
ROUTES = [
    ("POST", RUNS),
    ("PATCH", NOBODY),
    ("POST", f"{NOBODY}/clone"),
    ("POST", "/api/v1/run-config/validate"),
    ("POST", "/api/v1/session"),
    ("POST", "/api/v1/tokens"),
    ("POST", "/api/v1/clusters"),
    ("PATCH", "/api/v1/clusters/local"),
]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_bad_bodies(service, body):
    answers = {(method, path): service.ask(method, path, body) for method, path in ROUTES}
    assert {where: answer.status for where, answer in answers.items() if not 400 <= answer.status < 500} == {}
    assert all(answer.is_problem for answer in answers.values())


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_bad_reports_of_workers(service, run_id, body):
    answer = service.ask("POST", "/api/v1/ingest", body, Authorization=f"Bearer {service.worker_token(run_id)}")
    assert (answer.status, answer.is_problem) in {(422, True), (400, True)}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/runs/%00",
        f"/api/v1/runs/{'0' * 3000}",
        "/api/v1/clusters/%00",
        "/api/v1/clusters/%FF%FE",
        "/api/v1/clusters/%ED%A0%80",
        f"/api/v1/clusters/{'a' * 50_000}",
        "/api/v1/figures/%00",
        "/api/v1/figures/..%2f..%2fetc%2fpasswd",
        f"{RUNS}?search=%00",
        f"{RUNS}?search={'a' * 50_000}",
        f"{RUNS}?label=a:%00",
        f"{RUNS}?label=%ED%A0%80",
        f"{RUNS}?limit=1e400",
        f"{RUNS}?limit=NaN",
        f"{RUNS}?limit=-1",
        f"{RUNS}?limit={'9' * 5000}",
        f"{RUNS}?limit=1&limit=2",
        f"{RUNS}?limit=2&limit=1",
        f"{RUNS}?limits=1",
        f"{RUNS}?status=dancing",
        f"{RUNS}?cursor=%00",
        f"{RUNS}?cursor=W1tbW1tb",
        f"{RUNS}?cursor={'W1tb' * 120}",
        f"{NOBODY}/wait?timeout_s=nan",
        f"{NOBODY}/wait?timeout_s=inf",
        f"{NOBODY}/wait?timeout_s=1e9",
        f"{NOBODY}/series/data?names={',' * 50_000}",
        "/api/v1/stream?after=-1",
        "/api/v1/stream?after=99999999999999999999",
        "/api/v1/stream?runs=%00",
        f"/api/v1/stream?runs={',' * 50_000}",
    ],
    ids=lambda path: path[:60],
)
def test_bad_paths_and_queries(service, path):
    answer = service.ask("GET", path)
    assert 400 <= answer.status < 500, answer
    assert answer.is_problem


def test_an_unknown_parameter_is_told_with_those_there_are(service):
    answer = json.loads(service.ask("GET", f"{RUNS}?serach=x&limit=2&limit=3").body)
    assert [(error["parameter"], error["value"]) for error in answer["errors"]] == [("serach", None), ("limit", None)]
    assert "search" in answer["errors"][0]["detail"]
    assert service.ask("GET", f"{RUNS}?label=a:1&label=b:2").status == 200


KINDS = ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"]


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_that_are_no_json(service, kind):
    """What a form on a foreign page can send is not taken."""
    answer = service.ask("POST", RUNS, run(), Content_Type=kind)
    assert (answer.status, answer.is_problem) == (415, True)


def test_a_compressed_bomb_is_not_unpacked(service):
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < MAX_BODY_BYTES
    for path in (RUNS, "/api/v1/ingest"):
        answer = service.ask("POST", path, bomb, Content_Encoding="gzip")
        assert (answer.status, answer.is_problem) == (415, True)


def test_a_huge_body_is_refused_announced_or_not(service):
    announced = service.ask("POST", RUNS, b"{}", Content_Length=str(10**12))
    assert (announced.status, announced.is_problem) == (413, True)
    lines = [f"POST {RUNS} HTTP/1.1", "Host: x", f"Authorization: {service.bearer}"]
    lines += ["Content-Type: application/json", "Transfer-Encoding: chunked", "", ""]
    chunk = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    chunked = service.send("\r\n".join(lines).encode(), *[chunk] * 20)
    assert chunked.status in {413, 0}, "dropped, where it went on sending"


def test_a_slow_body_is_not_waited_for(service):
    begin = time.monotonic()
    lines = [f"POST {RUNS} HTTP/1.1", "Host: x", f"Authorization: {service.bearer}"]
    lines += ["Content-Type: application/json", "Content-Length: 100", "", ""]
    answer = service.send("\r\n".join(lines).encode(), b'{"name"')
    assert (answer.status, answer.is_problem) == (408, True)
    assert service.settings.body_timeout_s <= time.monotonic() - begin


@pytest.mark.parametrize("num_bytes", [100_000, 20_000_000])
@pytest.mark.parametrize("size", [20, 60_000])
def test_headers_are_limited(service, num_bytes, size):
    """Before anybody is known, so that a stranger cannot fill the memory."""
    header = b"X-A: " + b"a" * (size - 7) + b"\r\n"
    answer = service.send(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n", *[header * 50] * (num_bytes // size // 50 + 1))
    assert answer.status in {400, 431, 0}


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /api/v1/clusters/\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/clusters/\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_what_is_no_http_is_refused(service, request_):
    status = service.send(request_).status
    assert 400 <= status < 500 or status == HTTPStatus.NOT_IMPLEMENTED


CREDENTIALS = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer fdk_",
    "Bearer fdk_00000000_x",
    "Bearer fdk_%00%00%00%00_x",
    "bearer fdk_________x",
    "Bearer \xff\xfe",
    "Bearer a b",
    f"Bearer {'f' * 30_000}",
    "Basic Zm9vOmJhcg==",
    "Negotiate x",
]


@pytest.mark.parametrize("credentials", CREDENTIALS, ids=lambda text: text[:20])
def test_bad_credentials(service, credentials):
    answer = service.ask("GET", RUNS, Authorization=credentials)
    assert (answer.status, answer.is_problem, answer.headers["www-authenticate"]) == (401, True, "Bearer")


@pytest.mark.parametrize("cookie", ["foredeck_session=\xff", "foredeck_session", "foredeck_session=;=;a", "=" * 9000])
def test_bad_cookies(service, cookie):
    assert service.ask("GET", RUNS, Authorization="", Cookie=cookie).status == 401


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=12,
)
known_keys = st.sampled_from(
    ["name", "config", "labels", "notes", "cluster", "project", "scopes", "code", "overrides", "address", "events"]
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(known_keys, any_json, max_size=6) | any_json)
def test_any_json_is_answered(service, body):
    text = json.dumps(body).encode()
    for method, path in ROUTES:
        answer = service.ask(method, path, text)
        assert 200 <= answer.status < 500, (method, path, body)
        assert answer.is_problem or answer.status < 300
