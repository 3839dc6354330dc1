"""People: an administrator of everything, two projects, and users with roles in them, each with a browser."""

from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}


@pytest.fixture
def log_in(app, client):
    """A browser in which the user has followed a login link; it sends the CSRF token along."""

    def log_in(name):
        made = client.post(f"/api/v1/users/{name}/login-links")
        assert made.status_code == 201, made.text
        code = parse_qs(urlsplit(made.json()["url"]).fragment)["code"][0]
        browser = TestClient(app)
        session = browser.post("/api/v1/session", json={"code": code})
        assert session.status_code == 200, session.text
        browser.headers["X-CSRF-Token"] = session.json()["csrf_token"]
        return browser

    return log_in


@pytest.fixture
def make_user(client, log_in):
    """make_user("bob", b="viewer"): bob's browser."""

    def make_user(name, **roles):
        assert client.post("/api/v1/users", json={"name": name}).status_code == 201
        for project, role in roles.items():
            given = client.put(f"/api/v1/projects/{project}/members/{name}", json={"role": role})
            assert given.status_code == 200, given.text
        return log_in(name)

    return make_user


@pytest.fixture
def projects(client):
    """Two, `a` and `b`."""
    for name in ("a", "b"):
        assert client.post("/api/v1/projects", json={"name": name}).status_code == 201


@pytest.fixture
def alice(make_user, projects):
    """Launches runs in project a."""
    return make_user("alice", a="launcher")


@pytest.fixture
def bob(make_user, projects):
    """Looks at runs of project b."""
    return make_user("bob", b="viewer")


@pytest.fixture
def carol(make_user, projects):
    """Administers project a."""
    return make_user("carol", a="admin")


@pytest.fixture
def launch_in():
    """launch_in(browser, "a"): a new run, as the API shows it."""

    def launch_in(caller, project, **fields):
        body = {"name": "run", "config": CONFIG, "project": project, **fields}
        response = caller.post("/api/v1/runs", json=body)
        assert response.status_code == 202, response.text
        return response.json()

    return launch_in


@pytest.fixture
def bearer(app):
    """A client with the token that `browser` makes for itself."""

    def bearer(browser, scopes=("read", "write", "admin"), **fields):
        made = browser.post("/api/v1/tokens", json={"name": "t", "scopes": list(scopes), **fields})
        assert made.status_code == 201, made.text
        return TestClient(app, headers={"Authorization": f"Bearer {made.json()['token']}"})

    return bearer
