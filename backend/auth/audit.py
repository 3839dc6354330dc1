"""The audit log: who changed what."""

from typing import Any

from sqlalchemy.orm import Session

from backend.auth import repository
from backend.auth.identity import Principal


def record(session: Session, actor: Principal | str, action: str, target: object, **detail: Any) -> None:
    """Notes a change in the transaction that makes it: no change without its entry, no entry without its change."""
    name = actor if isinstance(actor, str) else actor.name
    repository.insert_audit_entry(session, name, action, str(target), detail)
