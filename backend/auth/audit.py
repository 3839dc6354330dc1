"""The audit log: who changed what."""

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import repository
from backend.auth.identity import Principal


def record(
    session: Session,
    actor: Principal | str,
    action: str,
    target: object,
    project_id: UUID | None = None,
    **detail: Any,
) -> None:
    """Notes a change in the transaction that makes it: no change without its entry, no entry without its change. With
    a project, its administrators may read the entry, too."""
    caller = Principal(actor, frozenset()) if isinstance(actor, str) else actor
    repository.insert_audit_entry(
        session,
        actor=caller.name,
        action=action,
        target=str(target),
        detail=detail,
        project_id=project_id,
        address=caller.address,
        request_id=caller.request_id,
    )
