"""Rules of idempotency keys."""

import hashlib
import json
from http import HTTPStatus

from sqlalchemy.orm import Session

from backend.errors import ApiError, ProblemError, invalid
from backend.idempotency import repository
from backend.models import IdempotencyKey

HEADER = "Idempotency-Key"


def fingerprint(method: str, path: str, query: str, body: bytes) -> str:
    """What makes two requests the same."""
    head = json.dumps([method, path, query]).encode()
    return hashlib.sha256(head + b"\n" + body).hexdigest()


def claim(session: Session, caller: str, key: str, fingerprint: str) -> IdempotencyKey | None:
    """The earlier answer to the same request; with none, the key is this transaction's until it ends.

    Raises ApiError: 409 while another request with the key is at work, or when its answer held a secret; 422 when it
    was a request for something else.
    """
    if not repository.try_lock(session, caller, key):
        detail = f"The first request with this {HEADER} is still at work: send it again in a moment."
        raise ApiError(HTTPStatus.CONFLICT, detail, headers={"Retry-After": "1"})
    found = repository.get(session, caller, key)
    if found is None:
        return None
    if found.fingerprint != fingerprint:
        detail = "was used for another request: take a new key for each thing to be done, and the same to repeat it"
        raise invalid([ProblemError(parameter=HEADER, detail=detail, value=key)])
    if found.body is None:
        detail = "This was done before, and the answer held a secret, shown once: take a new key to make another."
        raise ApiError(HTTPStatus.CONFLICT, detail)
    return found
