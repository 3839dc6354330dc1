"""Who becomes which user."""

import pytest

USERS = "/api/v1/users"


def names(client):
    return {user["name"] for user in client.get(USERS).json()["items"]}


def test_a_new_user_has_the_default_role_in_the_default_project(browser, client, launch_in):
    run = launch_in(client, None)
    assert browser.log_in() == ""
    assert browser.client.get(f"/api/v1/runs/{run['id']}").status_code == 200
    assert client.get("/api/v1/projects/default/members").json() == [
        {"user": "grace@example.org", "role": "viewer", "is_active": True}
    ]


@pytest.mark.parametrize("oidc_settings", [{"oidc_default_role": "none"}, {"oidc_default_project": "gone"}])
def test_a_new_user_may_have_no_role_at_all(browser):
    assert browser.log_in() == ""
    assert browser.client.get("/api/v1/projects").json()["items"] == []


def test_the_subject_is_the_user_and_the_address_is_not(browser, new_browser, client, provider):
    """An address can be given to another person, and a person another address."""
    assert browser.log_in() == ""
    provider.person = {**provider.person, "email": "hopper@example.org"}
    again = new_browser()
    assert again.log_in() == ""
    assert again.who() == browser.who()
    provider.person = {"sub": "0043", "email": "grace@example.org", "email_verified": True}
    other = new_browser()
    assert other.log_in() == ""
    assert other.who()["id"] != browser.who()["id"]
    assert other.who()["name"].startswith("grace@example.org-")


def test_an_address_takes_no_user_over(browser, client):
    client.post(USERS, json={"name": "boss", "email": "grace@example.org", "is_admin": True})
    assert browser.log_in() == ""
    assert (browser.who()["name"], browser.who()["is_admin"]) == ("grace@example.org", False)


@pytest.mark.parametrize("wish", ["admin", "ADMIN/../x", "<b>", "", "\u0430dmin", 7])
def test_a_name_that_is_taken_or_none_becomes_another(browser, client, provider, wish):
    client.post(USERS, json={"name": "ADMIN..x"})
    provider.person = {"sub": "0042", "preferred_username": wish, "email": "x@example.org", "email_verified": True}
    provider.changes = {"email": "admin" if wish == "admin" else None}
    browser.client.app.state.settings = browser.client.app.state.settings.model_copy(
        update={"oidc_email_domains": ("*",)}
    )
    assert browser.log_in() == ""
    user = browser.who()
    assert user["is_admin"] is False
    assert user["name"] not in {"admin", "ADMIN..x"}
    assert client.get(f"{USERS}/{user['name']}").status_code == 200


@pytest.mark.parametrize(
    "person",
    [
        {"email": "grace@evil.example", "email_verified": True},
        {"email": "grace@example.org", "email_verified": False},
        {"email": "grace@example.org", "email_verified": None},
        {"email": "grace@example.org.evil.example", "email_verified": True},
        {"email": "grace@sub.example.org", "email_verified": True},
        {"email": "grace@evil.example,x@example.org", "email_verified": "true"},
        {"email": ["grace@example.org"], "email_verified": True},
        {"email": None, "email_verified": True},
    ],
)
def test_only_verified_addresses_of_listed_domains_get_in(browser, client, provider, person):
    provider.changes = person
    assert browser.log_in() == "domain"
    assert names(client) == {"admin"}


@pytest.mark.parametrize("oidc_settings", [{"oidc_email_domains": ()}])
def test_without_domains_only_linked_users_get_in(browser, new_browser, client):
    assert browser.log_in() == "domain"
    client.post(USERS, json={"name": "grace"})
    assert client.patch(f"{USERS}/grace", json={"oidc_subject": "0042"}).json()["oidc_subject"] == "0042"
    assert browser.log_in() == ""
    assert browser.who()["name"] == "grace"
    taken = client.post(USERS, json={"name": "other", "oidc_subject": "0042"})
    assert (taken.status_code, taken.json()["errors"][0]["pointer"]) == (409, "/oidc_subject")


@pytest.mark.parametrize("oidc_settings", [{"oidc_email_domains": ("*",)}])
def test_a_star_lets_in_whoever_the_provider_does(browser, provider):
    provider.person = {"sub": "0042"}
    assert browser.log_in() == ""
    assert (browser.who()["name"], browser.who()["email"]) == ("0042", None)


def test_who_is_shut_out_stays_out(browser, client):
    assert browser.log_in() == ""
    client.patch(f"{USERS}/grace@example.org", json={"is_active": False})
    assert browser.who() is None
    assert browser.log_in() == "inactive"


@pytest.mark.parametrize("oidc_settings", [{"oidc_admin_claim": "groups:foredeck-admins"}])
def test_a_claim_makes_administrators_and_its_loss_ends_it(browser, client, provider):
    for groups, is_admin in (
        (["foredeck-admins", "x"], True),
        (["x"], False),
        ("foredeck-admins", True),
        (None, False),
    ):
        provider.changes = {"groups": groups}
        assert browser.log_in() == ""
        assert browser.who()["is_admin"] is is_admin, groups


@pytest.mark.parametrize("oidc_settings", [{"oidc_admin_claim": "groups:foredeck-admins"}])
def test_the_last_administrator_stays_against_the_claim(browser, client, provider):
    provider.changes = {"groups": ["foredeck-admins"]}
    assert browser.log_in() == ""
    client.patch(f"{USERS}/admin", json={"is_active": False})
    provider.changes = {}
    assert browser.log_in() == ""
    assert browser.who()["is_admin"] is True


def test_a_claim_that_is_not_asked_for_makes_nobody_an_administrator(browser, provider):
    provider.changes = {"groups": ["foredeck-admins"], "is_admin": True, "role": "admin"}
    assert browser.log_in() == ""
    assert browser.who()["is_admin"] is False


def test_logins_and_refusals_stand_in_the_audit_log(browser, client, provider):
    assert browser.log_in() == ""
    provider.changes = {"nonce": "x"}
    assert browser.log_in() == "provider"
    entries = client.get("/api/v1/audit").json()["items"]
    assert [(entry["actor"], entry["action"]) for entry in entries[:4]] == [
        ("stranger", "session.refuse"),
        ("user:grace@example.org", "session.create"),
        ("user:grace@example.org", "member.set"),
        ("user:grace@example.org", "user.create"),
    ]
    assert entries[0]["detail"]["reason"] == "provider"
    assert entries[0]["address"]
    assert entries[1]["detail"] == {"by": "oidc"}
