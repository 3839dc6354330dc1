"""What is no name, no filter and no body is refused as such, and never breaks anything."""

import pytest

NAMES = ["%00", "%FF", "%2e%2e%2f", "'%20OR%201=1", "a" * 3000, "%F0%9F%92%A9", "*"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users/{}"),
        ("PATCH", "/users/{}"),
        ("POST", "/users/{}/login-links"),
        ("GET", "/projects/{}"),
        ("PATCH", "/projects/{}"),
        ("GET", "/projects/{}/members"),
        ("PUT", "/projects/default/members/{}"),
        ("DELETE", "/projects/default/members/{}"),
        ("DELETE", "/tokens/{}"),
        ("GET", "/audit?actor={}"),
        ("GET", "/audit?cursor={}"),
        ("GET", "/runs?project={}"),
        ("GET", "/login/oidc/callback?state={}"),
    ],
)
def test_names_that_are_none(client, method, path):
    patch = {"name": "x"} if "projects" in path else {"is_active": True}
    for name in NAMES:
        answer = client.request(
            method, f"/api/v1{path.format(name)}", json={"PUT": {"role": "viewer"}, "PATCH": patch}.get(method)
        )
        assert answer.status_code < 500, name
        if answer.is_error:
            assert answer.headers["content-type"] == "application/problem+json", name
        elif method == "GET":
            assert answer.json()["items"] == [], name


BODIES = [
    ("/users", {"name": "x", "is_admin": "yes"}),
    ("/users", {"name": "x", "is_active": True}),
    ("/users", {"name": "x", "email": "nonsense"}),
    ("/users", {"name": "x", "email": "a@b\x00"}),
    ("/users", {"name": ["x"]}),
    ("/projects", {"name": None}),
    ("/projects", {"name": "a\x00"}),
    ("/tokens", {"name": "x", "scopes": ["read"], "project": 7}),
    ("/tokens", {"name": "x", "scopes": ["read"], "expires_at": 1e300}),
    ("/tokens", {"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-23:59"}),
    ("/tokens", {"name": "x", "scopes": ["read"], "expires_at": "2030-01-01T00:00:00"}),
    ("/tokens", {"name": "x", "scopes": ["read"], "user_id": "0b9c1d9e-0000-4000-8000-000000000000"}),
    ("/tokens", {"name": "x\n", "scopes": {"read": True}}),
    ("/session", {"code": "\x00"}),
    ("/session", {"code": "x" * 201}),
]


def test_bodies_that_are_none(client):
    for path, body in BODIES:
        answer = client.post(f"/api/v1{path}", json=body)
        assert 400 <= answer.status_code < 500, (path, body, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
