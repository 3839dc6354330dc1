"""Tokens of people in the database; those of workers are none of them."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Row, select, tuple_
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import ApiToken, Project, User


def list_page(
    session: Session, limit: int, after: Key | None, user_id: UUID | None, project_id: UUID | None
) -> Sequence[Row[ApiToken, str, str]]:
    """Live ones, newest first, of this user and for this project alone, where given: (token, user's name, project's
    name)."""
    statement = (
        select(ApiToken, User.name, Project.name)
        .outerjoin(User, User.id == ApiToken.user_id)
        .outerjoin(Project, Project.id == ApiToken.project_id)
        .where(ApiToken.run_id.is_(None), ApiToken.revoked_at.is_(None))
        .order_by(ApiToken.created_at.desc(), ApiToken.id.desc())
        .limit(limit)
    )
    if after:
        statement = statement.where(tuple_(ApiToken.created_at, ApiToken.id) < tuple_(*after))
    if user_id is not None:
        statement = statement.where(ApiToken.user_id == user_id)
    if project_id is not None:
        statement = statement.where(ApiToken.project_id == project_id)
    return session.execute(statement).all()


def get(session: Session, token_id: UUID) -> ApiToken | None:
    return session.scalar(select(ApiToken).where(ApiToken.id == token_id, ApiToken.run_id.is_(None)))
