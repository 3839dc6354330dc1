"""Secrets and what is kept of them. They are long and random, so that a plain SHA-256 is enough."""

import hashlib
import hmac
import secrets
from typing import NamedTuple

TOKEN_MARK = "fdk"  # noqa: S105
PREFIX_LENGTH = 8


class NewToken(NamedTuple):
    """A token as it is handed out once, and the two parts of it that are stored."""

    token: str
    prefix: str
    secret_sha256: str


def new_secret() -> str:
    """256 random bits, safe in a URL and a cookie."""
    return secrets.token_urlsafe(32)


def new_token() -> NewToken:
    """`fdk_<prefix>_<secret>`: the mark lets scanners find leaked ones, the prefix finds its row."""
    prefix, secret = secrets.token_hex(PREFIX_LENGTH // 2), new_secret()
    return NewToken(f"{TOKEN_MARK}_{prefix}_{secret}", prefix, sha256(secret))


def split_token(token: str) -> tuple[str, str] | None:
    """(prefix, secret), or None when it cannot be a token."""
    mark, _, rest = token.partition("_")
    prefix, _, secret = rest.partition("_")
    is_token = mark == TOKEN_MARK and len(prefix) == PREFIX_LENGTH and prefix.isascii() and prefix.isalnum() and secret
    return (prefix, secret) if is_token else None


def sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def is_equal(left: str, right: str) -> bool:
    """Compares in constant time."""
    return hmac.compare_digest(left.encode("utf-8", "replace"), right.encode("utf-8", "replace"))
