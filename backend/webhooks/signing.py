"""Signatures as Standard Webhooks has them (https://www.standardwebhooks.com): receivers can use its libraries."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from uuid import UUID

MARK = "whsec_"
NUM_SECRET_BYTES = 32


def new_secret() -> str:
    return MARK + base64.b64encode(secrets.token_bytes(NUM_SECRET_BYTES)).decode()


def message_id(delivery_id: UUID) -> str:
    """The same at every attempt."""
    return f"msg_{delivery_id.hex}"


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`, with the bytes that the secret stands for."""
    key = base64.b64decode(secret.removeprefix(MARK))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def headers(secrets: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """With a signature for each secret, so that a receiver may know either one while they are exchanged.

    Args:
        message_id: the same at every attempt, by which a receiver sees what it had before.
        timestamp: of the attempt, in seconds, by which it refuses what somebody recorded long ago.
    """
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, message_id, timestamp, body) for secret in secrets),
    }
