"""Browser sessions: what the cookie is worth, to whom, and for how long."""

import pytest
from fastapi.testclient import TestClient

ME = "/api/v1/session"


def code_of(client):
    return client.post("/api/v1/login-links").json()["url"].partition("#code=")[2]


def flags(cookie):
    return {part.strip().partition("=")[0].lower() for part in cookie.split(";")[1:]}


@pytest.mark.parametrize("public_url", ["http://127.0.0.1:8600", "https://foredeck.example.org"])
def test_the_cookie_is_for_this_service_alone(app, client, public_url):
    app.state.settings = app.state.settings.model_copy(update={"public_url": public_url})
    made = TestClient(app).post(ME, json={"code": code_of(client)}).headers["set-cookie"]
    assert flags(made) == {"httponly", "samesite", "path", "max-age"} | ({"secure"} if "https" in public_url else set())
    assert "SameSite=strict" in made
    assert "domain" not in made.lower()


def test_a_login_leaves_nothing_of_the_former_session(app, client, log_in):
    browser = log_in("admin")
    former = browser.cookies["foredeck_session"]
    again = browser.post(ME, json={"code": code_of(client)})
    assert again.status_code == 200
    new = browser.cookies["foredeck_session"]
    assert new != former
    assert again.json()["csrf_token"] != browser.headers["X-CSRF-Token"]
    answers = [TestClient(app, cookies={"foredeck_session": secret}).get(ME).status_code for secret in (former, new)]
    assert answers == [401, 200]


def test_a_secret_that_is_brought_along_becomes_no_session(app, client):
    """An attacker may plant a cookie before the login; it is not the one that the login makes."""
    planted = TestClient(app, cookies={"foredeck_session": "planted"})
    planted.post(ME, json={"code": code_of(client)})
    assert TestClient(app, cookies={"foredeck_session": "planted"}).get(ME).status_code == 401


def test_logging_out_everywhere_ends_the_users_sessions_alone(log_in, alice):
    here, there = log_in("admin"), log_in("admin")
    assert here.delete(f"{ME}?everywhere=true").status_code == 204
    assert there.get(ME).status_code == 401
    assert alice.get(ME).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_a_change_from_a_foreign_page_is_refused_even_with_the_csrf_token(app, client, log_in, headers):
    browser = log_in("admin")
    refused = browser.post("/api/v1/projects", json={"name": "c"}, headers=headers)
    assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
    assert browser.post("/api/v1/projects", json={"name": "c"}, headers={"Origin": "http://testserver"}).is_success
    code = code_of(client)
    assert TestClient(app).post(ME, json={"code": code}, headers=headers).status_code == 403, "login into another's"
    assert TestClient(app).post(ME, json={"code": code}).status_code == 200


def test_a_token_is_taken_from_wherever_it_comes(client):
    made = client.post("/api/v1/projects", json={"name": "c"}, headers={"Origin": "https://ci.example"})
    assert made.status_code == 201


def test_the_csrf_token_of_another_session_is_worth_nothing(log_in):
    first, second = log_in("admin"), log_in("admin")
    headers = {"X-CSRF-Token": second.headers["X-CSRF-Token"]}
    assert first.post("/api/v1/projects", json={"name": "c"}, headers=headers).status_code == 403


def test_a_bearer_token_that_is_no_good_is_not_helped_by_a_session(log_in):
    browser = log_in("admin")
    assert browser.get(ME, headers={"Authorization": "Bearer fdk_00000000_x"}).status_code == 401
