"""A small identity provider: a real HTTP server with real keys, which can be told to lie."""

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi.testclient import TestClient

CLIENT_ID, CLIENT_SECRET = "foredeck", "s/ecret: 1"


class Provider:
    """Issues codes for whoever `person` is, and redeems each once."""

    def __init__(self, url):
        self.url = url
        self.person = {"sub": "0042", "email": "grace@example.org", "email_verified": True}
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.codes = {}
        self.changes = {}
        """Of the ID token's claims; None leaves one out."""
        self.times = {}
        """More claims, as seconds from when the token is issued."""
        self.sign = lambda claims: jwt.encode(claims, self.key, "RS256", headers={"kid": "1"})
        self.metadata_changes = {}
        self.authorizations = []

    def metadata(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            **self.metadata_changes,
        }

    def keys(self):
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "1", "use": "sig", "alg": "RS256"}]}

    def authorize(self, asked):
        code = token_hex(8)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def redeem(self, form, authorization):
        """(status, answer), as RFC 6749 and 7636 want it."""
        self.authorizations.append((authorization, form))
        asked = self.codes.pop(form.get("code"), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode()
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if (asked["code_challenge_method"], asked["code_challenge"]) != ("S256", challenge.rstrip("=")):
            return 400, {"error": "invalid_grant"}
        if not self._knows(form, authorization):
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(self._claims(asked["nonce"]))}

    def _knows(self, form, authorization):
        if authorization:
            pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
            return [unquote(part) for part in pair] == [CLIENT_ID, CLIENT_SECRET]
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)

    def _claims(self, nonce):
        now = int(time.time())
        own = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce}
        times = {name: now + seconds for name, seconds in self.times.items()}
        claims = {**own, **self.person, **self.changes, **times}
        return {name: value for name, value in claims.items() if value is not None}


@pytest.fixture(scope="session")
def listener():
    """(its address, whom it answers for): one server for all tests."""
    holder = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            provider, address = holder["provider"], urlsplit(self.path)
            if address.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(address.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif address.path == "/.well-known/openid-configuration":
                self.say(200, provider.metadata())
            else:
                self.say(200, provider.keys())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self.say(*holder["provider"].redeem(form, self.headers.get("Authorization")))

        def say(self, status, body):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", holder
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def provider(listener):
    url, holder = listener
    holder["provider"] = Provider(url)
    return holder["provider"]


@pytest.fixture
def oidc_settings():
    """What differs from a usual configuration."""
    return {}


@pytest.fixture
def settings(settings, provider, oidc_settings):
    configured = {
        "oidc_issuer": provider.url,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_name": "Example ID",
        "oidc_email_domains": ("example.org",),
    }
    return settings.model_copy(update={**configured, **oidc_settings})


class Browser:
    """Follows the way through the provider by hand."""

    def __init__(self, app):
        self.client = TestClient(app, follow_redirects=False)

    def begin(self):
        """Where the provider sends the browser back to."""
        begun = self.client.get("/api/v1/login/oidc")
        assert begun.status_code == 303
        back = httpx.get(begun.headers["location"], trust_env=False)
        return back.headers["location"].removeprefix("http://127.0.0.1:8600")

    def finish(self, path):
        """The word for what went wrong, or nothing."""
        done = self.client.get(path)
        assert done.status_code == 303
        place, _, problem = done.headers["location"].partition("#problem=")
        assert place == "/login"
        assert bool(problem) != ("foredeck_session" in done.headers.get("set-cookie", ""))
        return problem

    def log_in(self):
        return self.finish(self.begin())

    def who(self):
        answer = self.client.get("/api/v1/session")
        return answer.json()["user"] if answer.status_code == 200 else None


@pytest.fixture
def new_browser(app):
    return lambda: Browser(app)


@pytest.fixture
def browser(new_browser):
    return new_browser()
