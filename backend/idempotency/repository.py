"""Idempotency keys in the database."""

import hashlib
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.models import IdempotencyKey

LIFETIME = timedelta(hours=24)
_IS_OVER = IdempotencyKey.created_at < func.now() - LIFETIME


def try_lock(session: Session, caller: str, key: str) -> bool:
    """Whether the key is the transaction's until it ends. It ends with its connection, too, whatever happens to the
    process; PostgreSQL lets go of the lock only after what was committed can be seen."""
    digest = hashlib.sha256(f"{caller}\n{key}".encode()).digest()
    number = int.from_bytes(digest[:8], signed=True)
    return bool(session.scalar(select(func.pg_try_advisory_xact_lock(number))))


def get(session: Session, caller: str, key: str) -> IdempotencyKey | None:
    return session.scalar(
        select(IdempotencyKey).where(IdempotencyKey.caller == caller, IdempotencyKey.key == key, ~_IS_OVER)
    )


def put(session: Session, row: IdempotencyKey) -> None:
    """In place of one that has expired and was not deleted yet."""
    names = ("caller", "key", "fingerprint", "status", "headers", "body")
    values = {name: getattr(row, name) for name in names}
    statement = insert(IdempotencyKey).values(**values)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["caller", "key"], set_=values | {"created_at": func.now()}, where=_IS_OVER
        )
    )


def delete_expired(session: Session) -> None:
    session.execute(delete(IdempotencyKey).where(_IS_OVER))
