"""Who may do what, and who did."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


class User(Base):
    """A person. The first one, who administers everything, is made by `foredeck up`."""

    __tablename__ = "user_account"
    __table_args__ = (UniqueConstraint("oidc_issuer", "oidc_subject"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str | None]
    is_admin: Mapped[bool] = mapped_column(server_default="false")
    """May do everything, in every project and with clusters and users."""
    is_active: Mapped[bool] = mapped_column(server_default="true")
    """Whoever is not is a stranger, whatever tokens and sessions there are."""
    oidc_issuer: Mapped[str | None]
    oidc_subject: Mapped[str | None]
    """Who it is at the identity provider, which may change name and email but not this."""
    created_at: Mapped[datetime] = now_column()


class Project(Base):
    """What runs belong to, and what people are given roles in."""

    __tablename__ = "project"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime] = now_column()


class ProjectMember(Base):
    """A person's role in a project."""

    __tablename__ = "project_member"
    __table_args__ = (CheckConstraint("role IN ('viewer','launcher','admin')", name="role"),)

    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[UUID] = mapped_column(
        ForeignKey("user_account.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    role: Mapped[str]


class ApiToken(Base):
    """A bearer token. Only its hash is kept; the prefix finds it and shows which one it is."""

    __tablename__ = "api_token"
    __table_args__ = (Index("ix_api_token_run_id", "run_id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    prefix: Mapped[str] = mapped_column(unique=True)
    secret_sha256: Mapped[str]
    name: Mapped[str]
    scopes: Mapped[list[str]]
    user_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    """Set on a worker's token, which may only report to this run."""
    attempt: Mapped[int | None]
    """The last attempt that a worker's token is good for; null on those of a version before, which are for all."""
    project_id: Mapped[UUID | None] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    """The one project that it is good for; null for all of its user's."""
    created_at: Mapped[datetime] = now_column()
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Base):
    """A one-time login code; used once, then worthless."""

    __tablename__ = "login_link"

    code_sha256: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A logged-in browser."""

    __tablename__ = "browser_session"

    secret_sha256: Mapped[str] = mapped_column(primary_key=True)
    csrf_token: Mapped[str]
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = now_column()
    expires_at: Mapped[datetime]


class OidcLogin(Base):
    """A login that has begun at the identity provider and is not back yet; taken once."""

    __tablename__ = "oidc_login"

    state_sha256: Mapped[str] = mapped_column(primary_key=True)
    nonce: Mapped[str]
    code_verifier: Mapped[str]
    expires_at: Mapped[datetime]


class AuditEntry(Base):
    """Who changed what, and from where."""

    __tablename__ = "audit_entry"
    __table_args__ = (Index("ix_audit_entry_project_id_id", "project_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    time: Mapped[datetime] = now_column()
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    detail: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    project_id: Mapped[UUID | None] = mapped_column(ForeignKey("project.id", ondelete="SET NULL"))
    address: Mapped[str | None]
    """Where the request came from; null for the service itself."""
    request_id: Mapped[str | None]
