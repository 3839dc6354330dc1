"""Tokens, sessions, login links and users in the database."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from backend.models import ApiToken, AuditEntry, BrowserSession, LoginLink, OidcLogin, Project, ProjectMember, User

LAST_USED_PRECISION = timedelta(minutes=1)


def get_live_token(session: Session, prefix: str) -> ApiToken | None:
    is_live = ApiToken.revoked_at.is_(None) & or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > func.now())
    return session.scalar(select(ApiToken).where(ApiToken.prefix == prefix, is_live))


def touch_token(session: Session, token: ApiToken) -> None:
    """Notes that it was used, at most once a minute, so that busy tokens cost no writes; not where it has been revoked
    meanwhile."""
    is_old = or_(ApiToken.last_used_at.is_(None), ApiToken.last_used_at < func.now() - LAST_USED_PRECISION)
    statement = (
        update(ApiToken)
        .where(ApiToken.id == token.id, is_old, ApiToken.revoked_at.is_(None))
        .values(last_used_at=func.now())
    )
    session.execute(statement, execution_options={"synchronize_session": False})


def insert_token(session: Session, token: ApiToken) -> None:
    session.add(token)
    session.flush()
    session.refresh(token)


def get_browser_session(session: Session, secret_sha256: str) -> tuple[BrowserSession, User] | None:
    statement = (
        select(BrowserSession, User)
        .join(User, User.id == BrowserSession.user_id)
        .where(BrowserSession.secret_sha256 == secret_sha256, BrowserSession.expires_at > func.now(), User.is_active)
    )
    row = session.execute(statement).one_or_none()
    return None if row is None else (row[0], row[1])


def insert_browser_session(session: Session, sha256: str, csrf_token: str, user_id: UUID, lifetime: timedelta) -> None:
    values = {"secret_sha256": sha256, "csrf_token": csrf_token, "user_id": user_id}
    session.execute(insert(BrowserSession).values(**values, expires_at=func.now() + lifetime))


def delete_browser_session(session: Session, secret_sha256: str) -> None:
    session.execute(delete(BrowserSession).where(BrowserSession.secret_sha256 == secret_sha256))


def delete_browser_sessions(session: Session, user_id: UUID) -> None:
    session.execute(delete(BrowserSession).where(BrowserSession.user_id == user_id))


def insert_login_link(session: Session, code_sha256: str, user_id: UUID, lifetime: timedelta) -> LoginLink:
    values = {"code_sha256": code_sha256, "user_id": user_id, "expires_at": func.now() + lifetime}
    return session.scalars(insert(LoginLink).values(**values).returning(LoginLink)).one()


def use_login_link(session: Session, code_sha256: str) -> User | None:
    """The link's user, once: of two that use it at the same time one gets nothing."""
    is_good = (LoginLink.code_sha256 == code_sha256) & LoginLink.used_at.is_(None) & (LoginLink.expires_at > func.now())
    user_id = session.scalar(
        update(LoginLink).where(is_good).values(used_at=func.now()).returning(LoginLink.user_id),
        execution_options={"synchronize_session": False},
    )
    return session.get(User, user_id) if user_id else None


def list_roles(session: Session, user_id: UUID, project_id: UUID | None = None) -> dict[UUID, str]:
    """The user's role in each of their projects, or in the given one alone."""
    statement = select(ProjectMember.project_id, ProjectMember.role).where(ProjectMember.user_id == user_id)
    if project_id is not None:
        statement = statement.where(ProjectMember.project_id == project_id)
    return dict(session.execute(statement).all())


def get_project(session: Session, name: str) -> Project | None:
    return session.scalar(select(Project).where(Project.name == name))


def list_projects(session: Session, project_ids: Collection[UUID] | None) -> Sequence[Project]:
    """Those of the given ids, or all."""
    statement = select(Project).order_by(Project.name)
    if project_ids is not None:
        statement = statement.where(Project.id.in_(project_ids))
    return session.scalars(statement).all()


def get_user(session: Session, user_id: UUID) -> User | None:
    return session.get(User, user_id)


def ensure_first_user(session: Session, name: str) -> User:
    """Who administers everything."""
    session.execute(upsert(User).values(name=name, is_admin=True).on_conflict_do_nothing())
    return session.scalars(select(User).where(User.name == name)).one()


def insert_audit_entry(session: Session, **values: object) -> None:
    session.execute(insert(AuditEntry).values(**values))


def delete_expired(session: Session) -> None:
    """What has expired and serves no record."""
    for table in (BrowserSession, LoginLink, OidcLogin):
        session.execute(delete(table).where(table.expires_at < func.now()))
