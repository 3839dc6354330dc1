"""What strangers, foreign pages, forged headers and forged paths get: nothing."""

import json
import re
from http import HTTPStatus

import pytest

RUNS = "/api/v1/runs"
SECRET = b"outside-of-the-dashboard"
EVIL = "evil.example"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/../../../../../../etc/passwd",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%5c..%5csecret.txt",
        "/assets/....//....//secret.txt",
        "/assets/%252e%252e%252f%252e%252e%252fsecret.txt",
        "/assets/..%c0%af..%c0%afsecret.txt",
        "/../dist-private/secret.txt",
        "/%2e%2e/dist-private/secret.txt",
        "/assets/link.txt",
        "//etc/passwd",
        "/assets//etc/passwd",
        "/assets/%00/../../secret.txt",
        "/assets/app.js%00.txt",
        "/file:///etc/passwd",
    ],
)
def test_path_traversal_in_static_files(service, path):
    """Folders beside the dashboard's, links out of it and the machine's own files stay where they are."""
    answer = service.ask("GET", path)
    assert answer.status in {200, 400, 404}
    assert SECRET not in answer.body
    assert b"root:" not in answer.body
    assert answer.status != HTTPStatus.OK or b"<title>Foredeck</title>" in answer.body


def test_what_belongs_to_the_dashboard_is_served(service):
    assert service.ask("GET", "/assets/app.js").body == b"// the dashboard"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/figures/..%2f..%2fsettings",
        "/api/v1/figures/%2e%2e",
        f"{RUNS}/../../etc/passwd",
        "/api/v1/docs/..%2f..%2f",
    ],
)
def test_path_traversal_in_the_api(service, path):
    answer = service.ask("GET", path)
    assert (answer.status, answer.is_problem) in {(404, True), (422, True), (200, False)}
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    "path", ["//api/v1/runs", "/x/../api/v1/runs", "/%61pi/v1/runs", "/api/v1/runs/", "/API/v1/runs", "/api/v1/runs;x",
             "/api//v1/runs", "/api/v1//runs", "/./api/v1/runs", "/api/v1/runs%2f", "/api/v1/runs%00", "/api/v1/runs?"]
)  # fmt: skip
def test_another_spelling_of_a_path_opens_nothing(service, path):
    """Strangers get a refusal or the dashboard's page, which is public, never data."""
    answer = service.ask("GET", path, Authorization="")
    is_page = answer.status == HTTPStatus.OK and answer.headers["content-type"].startswith("text/html")
    assert answer.status in {400, 401, 404} or is_page
    assert b"next_cursor" not in answer.body


@pytest.mark.parametrize(
    "path", ["/metrics", "/docs", "/redoc", "/openapi.json", "/admin", "/debug", "/.git/config", "/.env"]
)
def test_nothing_lies_beside_the_api(service, path):
    """The document and its page are for those who are logged in; there are no metrics, and no debugger."""
    assert b"<title>Foredeck</title>" in service.ask("GET", path, Authorization="").body
    for hidden in ("/api/v1/docs", "/api/v1/openapi.json", "/api/v1/metrics", "/api/docs", "/api"):
        assert service.ask("GET", hidden, Authorization="").status == 401


@pytest.mark.parametrize(
    "path", [f"{RUNS}/", "/assets", "/assets/", "//evil.example/%2e%2e", "//evil.example/..", "/login"]
)
def test_no_redirect_follows_a_forged_host(service, path):
    answer = service.ask("GET", path, Host=EVIL)
    assert "location" not in answer.headers
    assert answer.status in {200, 404}


def test_links_are_made_of_the_public_address_alone(service):
    """Host header attack: a login link that was asked for with a forged host leads home all the same."""
    forged = {"Host": EVIL, "X_Forwarded_Host": EVIL, "X_Forwarded_Proto": "https", "Forwarded": f"host={EVIL}"}
    link = service.ask("POST", "/api/v1/login-links", **forged)
    assert json.loads(link.body)["url"].startswith(f"{service.settings.public_url}/login#code=")
    body = json.dumps({"name": "x", "config": {}}).encode()
    made = service.ask("POST", RUNS, body, **forged)
    assert made.headers["location"].startswith("/api/v1/runs/")
    everything = link.body + made.body + "".join(made.headers.values()).encode()
    assert EVIL.encode() not in everything


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "HEAD", "PUT", "DELETE"])
def test_other_methods_are_refused_with_those_there_are(service, method):
    answer = service.ask(method, RUNS)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
    assert SECRET not in answer.body
    assert service.token.encode() not in answer.body


def test_no_header_makes_another_method(service, run_id):
    for name in ("X_HTTP_Method_Override", "X_Method_Override", "X_HTTP_Method"):
        assert service.ask("GET", f"{RUNS}/{run_id}", **{name: "DELETE"}).status == 200
        assert service.ask("POST", f"{RUNS}/{run_id}?_method=DELETE", **{name: "DELETE"}).status == 405


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000"])
def test_no_other_origin_may_read(service, origin):
    """CORS: no page of another site is allowed anything."""
    preflight = {
        "Origin": origin,
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "x-csrf-token",
    }
    for answer in (service.ask("OPTIONS", RUNS, **preflight), service.ask("GET", RUNS, Origin=origin)):
        assert [name for name in answer.headers if name.startswith("access-control")] == []


@pytest.fixture
def session(service):
    """(cookie, csrf token) of a browser that has logged in, and the answer that made it so."""
    url = json.loads(service.ask("POST", "/api/v1/login-links").body)["url"]
    body = json.dumps({"code": url.partition("#code=")[2]}).encode()
    answer = service.ask("POST", "/api/v1/session", body, Authorization="")
    assert answer.status == 200, answer
    cookie = answer.headers["set-cookie"]
    return cookie.partition(";")[0], json.loads(answer.body)["csrf_token"], cookie


def test_the_cookie_is_out_of_reach(session):
    cookie = session[2].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
    assert "domain=" not in cookie
    assert len(session[0].partition("=")[2]) >= 43, "256 bits"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X_CSRF_Token": "wrong"}, 403),
        ({"X_CSRF_Token": "\xff"}, 403),
        ({"Origin": "https://evil.example", "X_CSRF_Token": "{csrf}"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "X_CSRF_Token": "{csrf}"}, 403),
        ({"Sec_Fetch_Site": "same-site", "X_CSRF_Token": "{csrf}"}, 403),
        ({"Sec_Fetch_Site": "same-origin", "X_CSRF_Token": "{csrf}"}, 202),
        ({"X_CSRF_Token": "{csrf}"}, 202),
    ],
)
def test_csrf(service, session, headers, status):
    """A foreign page has the browser's cookie sent along, and no more."""
    cookie, csrf, _ = session
    given = {name: value.replace("{csrf}", csrf) for name, value in headers.items()}
    body = json.dumps({"name": "x", "config": {}}).encode()
    answer = service.ask("POST", RUNS, body, Authorization="", Cookie=cookie, **given)
    assert answer.status == status, answer


def test_a_foreign_page_logs_nobody_in(service):
    """Login CSRF: a form of another site cannot put a browser into somebody else's session."""
    url = json.loads(service.ask("POST", "/api/v1/login-links").body)["url"]
    body = json.dumps({"code": url.partition("#code=")[2]}).encode()
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Content_Type": "text/plain"},
    ):
        answer = service.ask("POST", "/api/v1/session", body, Authorization="", **headers)
        assert answer.status in {403, 415}
        assert "set-cookie" not in answer.headers


def test_a_cookie_of_ones_own_making_is_no_session(service):
    """Session fixation: only what the service made counts, and a login makes it anew."""
    for cookie in ("foredeck_session=chosen", "foredeck_session=", "foredeck_session=' OR 1=1 --"):
        assert service.ask("GET", RUNS, Authorization="", Cookie=cookie).status == 401


def test_html_runs_no_inline_script_and_is_framed_nowhere(service, run_id):
    """CSP on every HTML answer: the page's own scripts alone, or none at all."""
    pages = ["/", "/login", "/runs/x", "/assets", "/api/v1/docs", f"{RUNS}/{run_id}/figures/reward.html"]
    for path in pages:
        answer = service.ask("GET", path)
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/html"), path
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        script = re.search(r"script-src ([^;]*)", policy) or re.search(r"default-src ([^;]*)", policy)
        is_sandboxed = policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
        assert script is not None
        assert is_sandboxed or "unsafe" not in script[1], path


@pytest.mark.parametrize("ending", ["\r\nX-Evil: 1", "%0d%0aX-Evil:%201", "\nX-Evil: 1"])
def test_no_header_is_split(service, ending):
    """Nor are lines of the log: see tests/unit/backend/test_logs.py."""
    for answer in (
        service.ask("GET", f"{RUNS}?search=x", X_Request_ID=f"a{ending}"),
        service.ask("GET", f"/api/v1/clusters/{ending if '%' in ending else 'x'}"),
    ):
        assert "x-evil" not in answer.headers


RAYS = [
    "/api/jobs/",
    "/api/v1/jobs",
    "/api/cluster_status",
    "/api/v1/clusters/local/proxy/api/jobs/",
    "/api/v1/clusters/local/api/jobs/",
    "/api/v1/clusters/http:%2f%2f127.0.0.1:8265",
    "/api/v1/clusters/local/checks/..%2f..%2fapi%2fjobs",
    "/api/v1/clusters/local/checks/check-x%2f..%2flogs",
]


def test_nothing_leads_through_to_ray(service):
    """Ray is spoken to, never proxied: no path of it is one of ours, and no address to ask is taken from a request."""
    for path in RAYS:
        answer = service.ask("GET", path)
        assert (answer.status in {404, 422}, answer.is_problem) == (True, True), path
        assert service.ask("GET", path, Authorization="").status == 401
