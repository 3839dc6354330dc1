from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

ME = "/api/v1/session"


def code_of(client):
    url = client.post("/api/v1/login-links").json()["url"]
    assert url.startswith("http://127.0.0.1:8600/login#code=")
    return parse_qs(urlsplit(url).fragment)["code"][0]


@pytest.fixture
def browser(app, client):
    """A browser that has followed a login link."""
    browser = TestClient(app)
    response = browser.post(ME, json={"code": code_of(client)})
    assert response.status_code == 200
    browser.csrf = response.json()["csrf_token"]
    return browser


def test_a_login_link_opens_a_session_once(app, client):
    code = code_of(client)
    browser = TestClient(app)
    response = browser.post(ME, json={"code": code})
    assert response.json()["user"]["name"] == "admin"
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert browser.get(ME).json() == response.json()
    again = TestClient(app).post(ME, json={"code": code})
    assert (again.status_code, "used before or has expired" in again.json()["detail"]) == (401, True)


def test_an_old_link_is_worthless(app, client, database):
    code = code_of(client)
    with database.transaction() as session:
        session.execute(text("UPDATE login_link SET expires_at = now()"))
    assert TestClient(app).post(ME, json={"code": code}).status_code == 401


def test_changes_with_a_cookie_need_the_csrf_token(browser):
    url = "/api/v1/tokens"
    body = {"name": "ci", "scopes": ["read"]}
    assert browser.get(url).status_code == 200
    refused = browser.post(url, json=body)
    assert (refused.status_code, "X-CSRF-Token" in refused.json()["detail"]) == (403, True)
    assert browser.post(url, json=body, headers={"X-CSRF-Token": "wrong"}).status_code == 403
    assert browser.post(url, json=body, headers={"X-CSRF-Token": browser.csrf}).status_code == 201


def test_a_bad_bearer_token_is_not_helped_by_a_good_cookie(browser):
    assert browser.get(ME, headers={"Authorization": "Bearer fdk_00000000_x"}).status_code == 401


def test_logging_out_ends_the_session(browser):
    secret = browser.cookies["foredeck_session"]
    assert browser.delete(ME, headers={"X-CSRF-Token": browser.csrf}).status_code == 204
    assert "foredeck_session" not in browser.cookies
    assert browser.get(ME, headers={"Cookie": f"foredeck_session={secret}"}).status_code == 401


def test_a_session_ends_by_itself(browser, database):
    with database.transaction() as session:
        session.execute(text("UPDATE browser_session SET expires_at = now()"))
    assert browser.get(ME).status_code == 401


def test_a_token_has_no_browser_session(client):
    assert client.get(ME).status_code == 404


def make_token(client, **fields):
    response = client.post("/api/v1/tokens", json={"name": "ci", "scopes": ["read"], **fields})
    assert response.status_code == 201, response.text
    return response.json()


def test_a_token_is_shown_once_and_only_its_hash_is_kept(client, database):
    made = make_token(client)
    secret = made["token"].split("_", 2)[2]
    listed = next(token for token in client.get("/api/v1/tokens").json()["items"] if token["id"] == made["id"])
    assert "token" not in listed
    assert (listed["prefix"], listed["scopes"]) == (made["token"].split("_")[1], ["read"])
    with database.transaction() as session:
        rows = session.execute(text("SELECT t::text FROM api_token t")).scalars().all()
    assert not any(secret in row for row in rows)


def as_bearer(app, token):
    return TestClient(app, headers={"Authorization": f"Bearer {token}"})


def test_a_revoked_token_is_worthless_and_revoking_twice_is_fine(app, client):
    made = make_token(client)
    bearer = as_bearer(app, made["token"])
    assert bearer.get("/api/v1/runs").status_code == 200
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert bearer.get("/api/v1/runs").status_code == 401


def test_an_expired_token_is_worthless(app, client, database):
    made = make_token(client, expires_at="2100-01-01T00:00:00Z")
    bearer = as_bearer(app, made["token"])
    assert bearer.get("/api/v1/runs").status_code == 200
    with database.transaction() as session:
        session.execute(text("UPDATE api_token SET expires_at = now() WHERE expires_at IS NOT NULL"))
    assert bearer.get("/api/v1/runs").status_code == 401


def test_an_expiry_in_the_past_is_refused(client):
    response = client.post(
        "/api/v1/tokens", json={"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}
    )
    assert response.json()["errors"][0]["pointer"] == "/expires_at"


@pytest.mark.parametrize("scopes", [[], ["ingest"], ["root"]])
def test_nobody_gives_away_what_is_no_users_scope(client, scopes):
    assert client.post("/api/v1/tokens", json={"name": "x", "scopes": scopes}).status_code == 422


def test_wrong_tokens_are_refused_alike(app, client):
    token = make_token(client)["token"]
    answers = set()
    for wrong in ("", "x", "fdk_", "fdk_00000000_", token[:-1], token + "x", token.replace("fdk", "abc"), "é" * 20):
        response = TestClient(app).get("/api/v1/runs", headers={"Authorization": f"Bearer {wrong}".encode()})
        answers.add((response.status_code, response.json()["detail"]))
        assert response.headers["www-authenticate"] == "Bearer"
    assert len(answers) == 1


def test_the_time_of_last_use_is_noted_at_most_once_a_minute(app, client, database):
    made = make_token(client)
    bearer = as_bearer(app, made["token"])

    def last_used():
        bearer.get("/api/v1/runs")
        return next(t["last_used_at"] for t in client.get("/api/v1/tokens").json()["items"] if t["id"] == made["id"])

    first = last_used()
    assert first is not None
    assert last_used() == first
    with database.transaction() as session:
        session.execute(text("UPDATE api_token SET last_used_at = last_used_at - interval '61 seconds'"))
    assert last_used() > first


def test_changes_stand_in_the_audit_log(client, launch, database):
    made = make_token(client)
    client.delete(f"/api/v1/tokens/{made['id']}")
    run = launch(name="audited")
    client.patch(f"/api/v1/runs/{run['id']}", json={"notes": "n"})
    with database.transaction() as session:
        entries = session.execute(text("SELECT actor, action, target FROM audit_entry ORDER BY id")).all()
    assert entries[-4:] == [
        ("token:admin/test", "token.create", made["id"]),
        ("token:admin/test", "token.revoke", made["id"]),
        ("token:admin/test", "run.launch", run["id"]),
        ("token:admin/test", "run.update", run["id"]),
    ]
