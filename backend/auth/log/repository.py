"""The audit log in the database, as it is read."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import Row, or_, select
from sqlalchemy.orm import Session

from backend.models import AuditEntry, Project


def list_page(
    session: Session,
    limit: int,
    before_id: int | None,
    project_ids: Collection[UUID] | None,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    project: str | None = None,
) -> Sequence[Row[AuditEntry, str]]:
    """(entry, project's name), newest first; of the given projects, or all.

    An actor may be a user's name: then what their tokens did counts, too. `run` as action is all of `run.*`.
    """
    statement = (
        select(AuditEntry, Project.name)
        .outerjoin(Project, Project.id == AuditEntry.project_id)
        .order_by(AuditEntry.id.desc())
        .limit(limit)
    )
    if before_id is not None:
        statement = statement.where(AuditEntry.id < before_id)
    if project_ids is not None:
        statement = statement.where(AuditEntry.project_id.in_(project_ids))
    if actor:
        by_token = AuditEntry.actor.startswith(f"token:{actor}/", autoescape=True)
        statement = statement.where(or_(AuditEntry.actor.in_([actor, f"user:{actor}"]), by_token))
    if action:
        is_kind = AuditEntry.action.startswith(f"{action}.", autoescape=True)
        statement = statement.where(or_(AuditEntry.action == action, is_kind))
    if target:
        statement = statement.where(AuditEntry.target == target)
    if project:
        statement = statement.where(Project.name == project)
    return session.execute(statement).all()
