"""The login's protocol, attacked: what comes back belongs to this browser, login and service, or to nobody."""

from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi.testclient import TestClient
from sqlalchemy import text


def test_a_login_makes_a_user_and_a_session(browser, client, provider):
    assert client.get("/api/v1/login").json() == {"oidc": {"name": "Example ID", "path": "/api/v1/login/oidc"}}
    assert browser.log_in() == ""
    user = browser.who()
    assert (user["name"], user["is_admin"], user["oidc_subject"]) == ("grace@example.org", False, "0042")
    csrf = browser.client.get("/api/v1/session").json()["csrf_token"]
    assert browser.client.delete("/api/v1/session", headers={"X-CSRF-Token": csrf}).status_code == 204


def test_the_provider_is_asked_for_no_more_than_a_code_for_this_login(browser):
    begun = browser.client.get("/api/v1/login/oidc")
    asked = parse_qs(urlsplit(begun.headers["location"]).query)
    assert asked["response_type"] == ["code"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["redirect_uri"] == ["http://127.0.0.1:8600/api/v1/login/oidc/callback"]
    again = parse_qs(urlsplit(browser.client.get("/api/v1/login/oidc").headers["location"]).query)
    assert all(again[name] != asked[name] for name in ("state", "nonce", "code_challenge"))
    cookie = begun.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/api/v1/login", "Max-Age=600"))
    assert "Secure" not in cookie


@pytest.mark.parametrize("oidc_settings", [{"public_url": "https://foredeck.example.org"}])
def test_cookies_are_secure_where_the_service_is(app, provider):
    browser = TestClient(app, follow_redirects=False, base_url="https://foredeck.example.org")
    begun = browser.get("/api/v1/login/oidc")
    back = httpx.get(begun.headers["location"], trust_env=False).headers["location"]
    cookies = begun.headers["set-cookie"], browser.get(back).headers["set-cookie"]
    assert all("Secure" in cookie for cookie in cookies)
    assert "SameSite=strict" in cookies[1]


def test_a_state_of_no_login_of_this_browser_is_refused(browser, new_browser, provider):
    path = browser.begin()
    code = parse_qs(urlsplit(path).query)["code"][0]
    assert new_browser().finish(path) == "state", "another browser, tricked into the attacker's login"
    for state in ("", "&state=", "&state=wrong", "&state=%00", f"&state={'x' * 4000}"):
        assert browser.finish(f"/api/v1/login/oidc/callback?code={code}{state}") == "state"
    assert provider.authorizations == [], "no code was redeemed"


def test_a_state_is_good_once(browser):
    path = browser.begin()
    state = browser.client.cookies["foredeck_oidc"]
    assert browser.finish(path) == ""
    browser.client.cookies.set("foredeck_oidc", state, path="/api/v1/login")
    assert browser.finish(path) == "state"


def test_a_login_that_takes_too_long_is_over(browser, database):
    path = browser.begin()
    with database.transaction() as session:
        session.execute(text("UPDATE oidc_login SET expires_at = now()"))
    assert browser.finish(path) == "state"


def test_a_code_is_good_once(browser, new_browser):
    """A stolen one, brought into a login of the thief's own."""
    first = browser.begin()
    assert browser.finish(first) == ""
    thief = new_browser()
    code, state = (
        parse_qs(urlsplit(path).query)[name][0] for path, name in ((first, "code"), (thief.begin(), "state"))
    )
    assert thief.finish(f"/api/v1/login/oidc/callback?code={code}&state={state}") == "provider"


def test_a_code_that_was_not_used_yet_is_good_for_its_own_login_alone(browser, new_browser):
    victim, thief = browser.begin(), new_browser()
    code, state = (
        parse_qs(urlsplit(path).query)[name][0] for path, name in ((victim, "code"), (thief.begin(), "state"))
    )
    assert thief.finish(f"/api/v1/login/oidc/callback?code={code}&state={state}") == "provider"
    assert thief.who() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "that of another login"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": ["another client"]},
        {"aud": None},
        {"azp": "another client"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": 42},
    ],
)
def test_an_id_token_that_is_not_for_this_login_is_refused(browser, provider, database, changes):
    provider.changes = changes
    refuses(browser, database)


@pytest.mark.parametrize("times", [{"exp": -3600}, {"iat": 3600}, {"nbf": 3600}])
def test_an_id_token_of_another_time_is_refused(browser, provider, database, times):
    provider.times = times
    refuses(browser, database)


def refuses(browser, database):
    assert browser.log_in() == "provider"
    assert browser.who() is None
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM user_account WHERE oidc_subject IS NOT NULL")) == 0


def unsigned(provider):
    return lambda claims: jwt.encode(claims, None, "none", headers={"kid": "1"})


def signed_by_another(provider):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return lambda claims: jwt.encode(claims, other, "RS256", headers={"kid": "1"})


def signed_by_an_unknown(provider):
    return lambda claims: jwt.encode(claims, provider.key, "RS256", headers={"kid": "2"})


def signed_with_the_public_key_as_secret(provider):
    public = provider.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # By hand: the library itself refuses to do so.
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)

    def sign(claims):
        head, body, _ = jwt.encode(claims, b"x" * 32, "HS256", headers={"kid": "1"}).split(".")
        signature = jwt.utils.base64url_encode(hmac.sign(f"{head}.{body}".encode(), public)).decode()
        return f"{head}.{body}.{signature}"

    return sign


def with_another_body(provider):
    def sign(claims):
        head, _, signature = jwt.encode(claims, provider.key, "RS256", headers={"kid": "1"}).split(".")
        body = jwt.encode({**claims, "sub": "0001"}, provider.key, "RS256").split(".")[1]
        return f"{head}.{body}.{signature}"

    return sign


def none_at_all(provider):
    return lambda claims: "nonsense"


@pytest.mark.parametrize(
    "forged",
    [
        unsigned,
        signed_by_another,
        signed_by_an_unknown,
        signed_with_the_public_key_as_secret,
        with_another_body,
        none_at_all,
    ],
)
def test_an_id_token_that_the_provider_did_not_sign_is_refused(browser, provider, forged):
    provider.sign = forged(provider)
    assert browser.log_in() == "provider"
    assert browser.who() is None


def test_a_key_that_the_provider_changes_to_is_known_at_the_next_login(browser, new_browser, provider):
    assert browser.log_in() == ""
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert new_browser().log_in() == ""


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
def test_a_provider_that_names_itself_otherwise_is_not_asked(browser, provider, metadata):
    provider.metadata_changes = metadata
    begun = browser.client.get("/api/v1/login/oidc")
    assert begun.headers["location"] == "/login#problem=provider"


@pytest.mark.parametrize("oidc_settings", [{"oidc_issuer": "http://127.0.0.1:1"}])
def test_a_provider_that_is_down_is_no_error_of_the_service(browser):
    assert browser.client.get("/api/v1/login/oidc").headers["location"] == "/login#problem=provider"


def test_what_the_provider_refuses_is_refused(browser):
    path = "/api/v1/login/oidc/callback"
    for error in ("access_denied", "%00%FF", "x" * 4000):
        state = parse_qs(urlsplit(browser.begin()).query)["state"][0]
        assert browser.finish(f"{path}?error={error}&state={state}") == "provider"


def test_an_answer_of_another_provider_is_refused(browser):
    """RFC 9207."""
    assert browser.finish(f"{browser.begin()}&iss=https%3A%2F%2Fevil.example") == "provider"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_secret_goes_the_way_that_the_provider_takes_it(browser, provider, method):
    provider.metadata_changes = {"token_endpoint_auth_methods_supported": [method]}
    assert browser.log_in() == ""
    authorization, form = provider.authorizations[0]
    assert (authorization is None, "client_secret" in form) == ((method == "client_secret_post"),) * 2


@pytest.mark.parametrize("oidc_settings", [{"oidc_issuer": None}])
def test_without_a_provider_there_is_no_such_login(browser, client):
    assert client.get("/api/v1/login").json() == {"oidc": None}
    for path in ("", "/callback?code=x&state=x"):
        assert browser.client.get(f"/api/v1/login/oidc{path}").status_code == 404
