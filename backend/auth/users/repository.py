"""Users in the database."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import LoginLink, User


def get(session: Session, name: str) -> User | None:
    return session.scalar(select(User).where(User.name == name))


def get_by_subject(session: Session, issuer: str, subject: str) -> User | None:
    return session.scalar(select(User).where(User.oidc_issuer == issuer, User.oidc_subject == subject))


def list_page(session: Session, limit: int, after: Key | None) -> Sequence[User]:
    statement = select(User).order_by(User.name).limit(limit)
    return session.scalars(statement.where(User.name > after[0]) if after else statement).all()


def insert(session: Session, **values: object) -> User | None:
    """None where there is one of this name, or this person has one."""
    statement = upsert(User).values(**values).on_conflict_do_nothing().returning(User)
    return session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()


def list_active_admins_locked(session: Session) -> Sequence[User]:
    """With their rows locked: of two that would remove the last two at once, the second sees one alone."""
    statement = select(User).where(User.is_admin, User.is_active).order_by(User.id).with_for_update()
    return session.scalars(statement, execution_options={"populate_existing": True}).all()


def delete_login_links(session: Session, user_id: UUID) -> None:
    session.execute(delete(LoginLink).where(LoginLink.user_id == user_id))
