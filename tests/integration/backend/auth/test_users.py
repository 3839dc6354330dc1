"""Users, and what is left of them when they are shut out."""

import threading

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend import bootstrap
from backend.auth.service import principal_of_session, principal_of_token

USERS = "/api/v1/users"


def code_of(link):
    return link.json()["url"].partition("#code=")[2]


def test_the_first_user_administers_everything_and_the_next_does_not(client):
    assert client.post(USERS, json={"name": "grace", "email": "grace@example.org"}).status_code == 201
    users = {user["name"]: user for user in client.get(USERS).json()["items"]}
    assert (users["admin"]["is_admin"], users["grace"]["is_admin"]) == (True, False)
    assert client.get(f"{USERS}/grace").json() == users["grace"]


def test_a_name_is_taken_once_and_stands_in_addresses(client):
    assert client.post(USERS, json={"name": "admin"}).status_code == 409
    for name in ("", "a/b", "ünal", "a b", "-x", "x" * 121):
        refused = client.post(USERS, json={"name": name})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/name"), name


def test_unknown_users_are_not_there(client):
    answers = [
        client.get(f"{USERS}/nobody"),
        client.patch(f"{USERS}/nobody", json={"is_active": False}),
        client.post(f"{USERS}/nobody/login-links"),
        client.delete(f"{USERS}/nobody/sessions"),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4


def test_others_learn_nothing_of_users(alice, carol):
    for caller in (alice, carol):
        assert caller.get(USERS).status_code == 403
        assert caller.get(f"{USERS}/admin").status_code == 403
        assert caller.patch(f"{USERS}/alice", json={"is_admin": True}).status_code == 403
        assert caller.post(f"{USERS}/admin/login-links").status_code == 403


def test_a_user_without_a_role_sees_nothing_but_themself(make_user, launch_in, client):
    run = launch_in(client, None)
    nobody = make_user("nobody")
    assert nobody.get("/api/v1/session").json()["user"]["name"] == "nobody"
    assert nobody.get("/api/v1/projects").json()["items"] == []
    assert nobody.get("/api/v1/runs").json()["items"] == []
    assert nobody.get(f"/api/v1/runs/{run['id']}").status_code == 404
    assert nobody.post("/api/v1/runs", json={"name": "x", "config": run["config"]}).status_code == 422


def test_a_user_who_is_shut_out_keeps_no_way_in(app, client, alice, bearer, database):
    """No session, token, login link, nor what is still open."""
    token = bearer(alice, ["write"])
    link = client.post(f"{USERS}/alice/login-links")
    secret = token.headers["authorization"].removeprefix("Bearer ")
    cookie = alice.cookies["foredeck_session"]
    assert client.patch(f"{USERS}/alice", json={"is_active": False}).json()["is_active"] is False
    assert alice.get("/api/v1/session").status_code == 401
    assert token.get("/api/v1/runs").status_code == 401
    assert TestClient(app).post("/api/v1/session", json={"code": code_of(link)}).status_code == 401
    assert client.post(f"{USERS}/alice/login-links").status_code == 409
    with database.transaction() as session:
        assert principal_of_token(session, secret) is None
        assert principal_of_session(session, cookie) is None


def test_who_is_let_in_again_has_their_tokens_and_roles_but_no_session(client, alice, bearer):
    token = bearer(alice, ["write"])
    for is_active in (False, True):
        client.patch(f"{USERS}/alice", json={"is_active": is_active})
    assert alice.get("/api/v1/session").status_code == 401
    assert [project["name"] for project in token.get("/api/v1/projects").json()["items"]] == ["a"]


def test_an_administrator_logs_a_user_out_everywhere(client, alice, log_in):
    other = log_in("alice")
    assert client.delete(f"{USERS}/alice/sessions").status_code == 204
    assert [browser.get("/api/v1/session").status_code for browser in (alice, other)] == [401, 401]
    assert log_in("alice").get("/api/v1/session").status_code == 200


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_admin": False}])
def test_somebody_always_administers_everything(client, make_user, change):
    refused = client.patch(f"{USERS}/admin", json=change)
    assert (refused.status_code, "nobody else" in refused.json()["detail"]) == (409, True)
    make_user("second")
    assert client.patch(f"{USERS}/admin", json=change).status_code == 409
    client.patch(f"{USERS}/second", json={"is_admin": True, "is_active": False})
    assert client.patch(f"{USERS}/admin", json=change).status_code == 409
    client.patch(f"{USERS}/second", json={"is_active": True})
    assert client.patch(f"{USERS}/admin", json=change).status_code == 200


def test_of_two_that_remove_each_other_at_once_one_stays(client, make_user, log_in, database):
    make_user("second")
    client.patch(f"{USERS}/second", json={"is_admin": True})
    browsers = {"second": log_in("admin"), "admin": log_in("second")}
    barrier = threading.Barrier(2)

    def remove(name):
        barrier.wait()
        browsers[name].patch(f"{USERS}/{name}", json={"is_admin": False})

    threads = [threading.Thread(target=remove, args=[name]) for name in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM user_account WHERE is_admin")) == 1


def test_bootstrap_does_not_raise_a_user_up_again(app, client, make_user, log_in, database):
    make_user("second")
    client.patch(f"{USERS}/second", json={"is_admin": True})
    log_in("second").patch(f"{USERS}/admin", json={"is_admin": False})
    with database.transaction() as session:
        assert bootstrap.ensure(session, app.state.settings).is_admin is False
    assert client.get(USERS).status_code == 403


def test_a_subject_needs_a_provider(client):
    refused = client.post(USERS, json={"name": "grace", "oidc_subject": "0042"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/oidc_subject")
