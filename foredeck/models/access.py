"""Who may do what, and who did."""

from datetime import datetime
from typing import Any
from uuid import UUID

from foredeck.models.base import Answer, Page


class LoginLink(Answer):
    """Opens the dashboard logged in; works once."""

    url: str
    expires_at: datetime


class Token(Answer):
    """An API token, without the token itself."""

    id: UUID
    prefix: str
    name: str
    user: str | None = None
    scopes: list[str]
    project: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class CreatedToken(Answer):
    """An API token, shown this once."""

    id: UUID
    name: str
    scopes: list[str]
    token: str
    expires_at: datetime | None = None


class User(Answer):
    """Somebody who may log in."""

    name: str
    email: str | None = None
    is_admin: bool
    is_active: bool
    oidc_subject: str | None = None


class TokenPage(Page[Token]):
    pass


class UserPage(Page[User]):
    pass


class Project(Answer):
    """What runs belong to, with your role in it."""

    name: str
    role: str
    num_runs: int
    num_members: int


class ProjectPage(Page[Project]):
    pass


class Member(Answer):
    """Somebody's role in a project."""

    user: str
    role: str
    is_active: bool


class AuditEntry(Answer):
    """Who changed what, and from where."""

    id: int
    time: datetime
    actor: str
    action: str
    target: str
    detail: dict[str, Any]
    project: str | None = None
    address: str | None = None
    request_id: str | None = None


class AuditPage(Page[AuditEntry]):
    pass
