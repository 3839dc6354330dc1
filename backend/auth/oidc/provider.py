"""What is said to the identity provider, and what is believed of its answers (OpenID Connect Core 1.0, RFC 7636)."""

import base64
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import jwt

from backend.auth import secrets
from backend.settings import Settings

TIMEOUT_S = 10.0
KEEP_METADATA_S = 600.0
LEEWAY_S = 30
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key that the provider alone has: neither `none` nor one made with a shared secret."""
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderError(Exception):
    """The provider cannot be asked, or its answer cannot be trusted. The message is for the log alone."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one login is recognised by when it comes back."""

    state: str
    """Ties the answer to the browser that asked."""
    nonce: str
    """Ties the ID token to this login."""
    code_verifier: str
    """Ties the code to this service: whoever steals it cannot redeem it."""


class Provider:
    """The configured identity provider. Its metadata is kept for ten minutes, its keys are fetched for each login."""

    def __init__(self, settings: Settings) -> None:
        self.issuer = str(settings.oidc_issuer)
        self.client_id = str(settings.oidc_client_id)
        self._secret = settings.oidc_client_secret
        self._redirect_uri = f"{settings.public_url}/api/v1/login/oidc/callback"
        self._lock = Lock()
        self._metadata: tuple[float, Mapping[str, Any]] | None = None

    def authorization_url(self, attempt: Attempt) -> str:
        """Where the browser goes to log in. Raises ProviderError."""
        challenge = hashlib.sha256(attempt.code_verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": "openid email profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = str(self._discovered()["authorization_endpoint"])
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    def claims(self, code: str, attempt: Attempt) -> dict[str, Any]:
        """Who has logged in, for the code that the browser brought back. Raises ProviderError."""
        metadata = self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": attempt.code_verifier,
        }
        authorization = self._authorization(metadata, form)
        with httpx.Client(timeout=TIMEOUT_S) as client:
            answer = _json(client, "POST", str(metadata["token_endpoint"]), data=form, auth=authorization)
            keys = _json(client, "GET", str(metadata["jwks_uri"]))
        return self._verified(str(answer.get("id_token", "")), keys, attempt.nonce)

    def _authorization(self, metadata: Mapping[str, Any], form: dict[str, str]) -> tuple[str, str] | None:
        """HTTP Basic, which every provider knows, unless it says otherwise; then in the form."""
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self._secret is not None and "client_secret_basic" in methods:
            return quote(self.client_id, safe=""), quote(self._secret, safe="")
        form["client_id"] = self.client_id
        if self._secret is not None:
            form["client_secret"] = self._secret
        return None

    def _verified(self, id_token: str, keys: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                id_token,
                _key_of(id_token, keys),
                algorithms=ALGORITHMS,
                audience=self.client_id,
                issuer=self.issuer,
                leeway=LEEWAY_S,
                options={"require": ["iss", "aud", "sub", "exp", "iat"]},
            )
        except (jwt.PyJWTError, AttributeError, TypeError, ValueError) as error:  # the last three by keys that are none
            raise ProviderError(f"the ID token is refused: {error}") from error
        if not secrets.is_equal(str(claims.get("nonce", "")), nonce):
            raise ProviderError("the ID token is refused: its nonce is that of another login")
        if claims.get("azp", self.client_id) != self.client_id:
            raise ProviderError("the ID token is refused: it was made for another client")
        return claims

    def _discovered(self) -> Mapping[str, Any]:
        with self._lock:
            if self._metadata is None or self._metadata[0] < time.monotonic():
                self._metadata = (time.monotonic() + KEEP_METADATA_S, self._discover())
            return self._metadata[1]

    def _discover(self) -> Mapping[str, Any]:
        address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        with httpx.Client(timeout=TIMEOUT_S) as client:
            metadata = _json(client, "GET", address)
        if metadata.get("issuer") != self.issuer:
            raise ProviderError(f"{address} speaks for {metadata.get('issuer')}, not for FOREDECK_OIDC_ISSUER")
        scheme = self.issuer.partition("://")[0]
        if bad := [name for name in _ENDPOINTS if not str(metadata.get(name, "")).startswith(f"{scheme}://")]:
            raise ProviderError(f"{address} names no {scheme} address for {', '.join(bad)}")
        return metadata


def _key_of(id_token: str, keys: Mapping[str, Any]) -> jwt.PyJWK:
    """The provider's key that the token says it is signed with; the only one where it says nothing."""
    key_id = jwt.get_unverified_header(id_token).get("kid")
    known = jwt.PyJWKSet.from_dict(dict(keys)).keys
    found = [key for key in known if key.public_key_use in (None, "sig") and key_id in (None, key.key_id)]
    if len(found) != 1:
        raise jwt.InvalidKeyError(f"{len(found)} keys fit its key id")
    return found[0]


def _json(client: httpx.Client, method: str, address: str, **given: Any) -> dict[str, Any]:
    try:
        answer = client.request(method, address, headers={"Accept": "application/json"}, **given)
        body = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
        raise ProviderError(f"{address} does not answer as it should: {error or type(error).__name__}") from error
    if not isinstance(body, dict) or not answer.is_success:
        reason = repr(body.get("error"))[:200] if isinstance(body, dict) else "no object"
        raise ProviderError(f"{address} answers {answer.status_code}: {reason}")
    return body
