"""Tokens that people make for themselves: never wider than what they have."""

from datetime import UTC, datetime, timedelta

import pytest

TOKENS = "/api/v1/tokens"


def ask(browser, scopes, **fields):
    return browser.post(TOKENS, json={"name": "t", "scopes": scopes, **fields})


def pointers(response):
    assert response.status_code == 422, response.text
    return [problem["pointer"] for problem in response.json()["errors"]]


def listed(browser):
    return {(token["user"], token["name"]) for token in browser.get(TOKENS).json()["items"]}


def test_everybody_lists_their_own_and_who_administers_everything_all(client, alice, bob):
    assert ask(alice, ["write"]).status_code == 201
    assert ask(bob, ["read"]).status_code == 201
    assert listed(alice) == {("alice", "t")}
    assert listed(client) == {("admin", "test"), ("alice", "t"), ("bob", "t")}


def test_nobody_revokes_anothers_but_who_administers_everything(client, alice, bob):
    token = ask(alice, ["read"]).json()
    foreign = bob.delete(f"{TOKENS}/{token['id']}")
    unknown = bob.delete(f"{TOKENS}/{token['id'][:-4]}0000")
    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert listed(alice) == {("alice", "t")}
    assert client.delete(f"{TOKENS}/{token['id']}").status_code == 204
    assert listed(alice) == set()


@pytest.mark.parametrize(
    ("role", "allowed"), [("viewer", ["read"]), ("launcher", ["read", "write"]), ("admin", ["read", "write", "admin"])]
)
def test_scopes_are_those_of_ones_roles(make_user, projects, role, allowed):
    user = make_user("dave", a=role)
    for scope in ("read", "write", "admin"):
        for fields in ({}, {"project": "a"}):
            made = ask(user, [scope], **fields)
            assert made.status_code == 201 if scope in allowed else pointers(made) == ["/scopes"], (scope, fields)


def test_a_project_bounds_its_tokens_scopes(make_user, projects):
    dave = make_user("dave", a="admin", b="viewer")
    assert ask(dave, ["admin"]).status_code == 201
    assert pointers(ask(dave, ["write"], project="b")) == ["/scopes"]
    made = ask(dave, ["read"], project="b").json()
    assert made["project"] == "b"
    assert next(token for token in dave.get(TOKENS).json()["items"] if token["id"] == made["id"])["project"] == "b"


def test_a_project_that_one_does_not_see_is_none(alice):
    foreign, unknown = ask(alice, ["read"], project="b"), ask(alice, ["read"], project="nosuch")
    assert pointers(foreign) == pointers(unknown) == ["/project"]
    assert foreign.json()["detail"] == unknown.json()["detail"]


def test_a_token_makes_none_of_wider_scope(client, bearer):
    writer = bearer(client, ["write"])
    assert pointers(ask(writer, ["admin"])) == ["/scopes"]
    assert ask(writer, ["read", "write"]).status_code == 201
    assert ask(bearer(client, ["read"]), ["read"]).status_code == 403


def test_a_token_of_one_project_makes_none_for_others(make_user, projects, bearer):
    dave = make_user("dave", a="launcher", b="launcher")
    bound = bearer(dave, ["write"], project="a")
    assert pointers(ask(bound, ["read"])) == ["/project"]
    assert pointers(ask(bound, ["read"], project="b")) == ["/project"]
    assert ask(bound, ["read"], project="a").status_code == 201
    assert {token["project"] for token in bound.get(TOKENS).json()["items"]} == {"a"}


def test_a_token_of_one_project_revokes_none_of_others(make_user, projects, bearer):
    dave = make_user("dave", a="launcher")
    wide = ask(dave, ["read"]).json()
    bound = bearer(dave, ["write"], project="a")
    assert bound.delete(f"{TOKENS}/{wide['id']}").status_code == 404


def test_a_token_makes_none_that_outlives_it(client, bearer):
    end = datetime.now(UTC) + timedelta(days=1)
    short = bearer(client, ["write"], expires_at=end.isoformat())
    assert pointers(ask(short, ["read"])) == ["/expires_at"]
    assert pointers(ask(short, ["read"], expires_at=(end + timedelta(seconds=1)).isoformat())) == ["/expires_at"]
    assert ask(short, ["read"], expires_at=end.isoformat()).status_code == 201


def test_a_token_follows_its_users_roles(client, alice, bearer, launch_in):
    token = bearer(alice, ["write"])
    run = launch_in(token, "a")
    client.put("/api/v1/projects/a/members/alice", json={"role": "viewer"})
    assert token.post(f"/api/v1/runs/{run['id']}/stop").status_code == 403
    client.delete("/api/v1/projects/a/members/alice")
    assert token.get(f"/api/v1/runs/{run['id']}").status_code == 404


def test_who_loses_the_office_loses_it_in_their_tokens(client, make_user, log_in, bearer):
    make_user("second")
    client.patch("/api/v1/users/second", json={"is_admin": True})
    token = bearer(log_in("second"))
    assert token.get("/api/v1/users").status_code == 200
    client.patch("/api/v1/users/second", json={"is_admin": False})
    assert token.get("/api/v1/users").status_code == 403


def test_a_login_link_is_no_way_out_of_a_token(client, alice, bearer):
    assert bearer(alice, ["write"]).post("/api/v1/login-links").status_code == 403
    assert alice.post("/api/v1/login-links").status_code == 201
