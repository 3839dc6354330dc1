"""Login links, tokens, users, projects and the audit log."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from foredeck.models import (
    AuditEntry,
    AuditPage,
    CreatedToken,
    LoginLink,
    Member,
    Project,
    ProjectPage,
    Token,
    TokenPage,
    User,
    UserPage,
)
from foredeck.paging import every
from foredeck.transport import Transport


class Access:
    """`Foredeck.access`. Users and new projects are for those who administer the service, members for those who
    administer the project, and tokens are everybody's own."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def login_link(self, user: str | None = None) -> LoginLink:
        """A link that opens the dashboard logged in, as that user or as yourself."""
        return self._transport.read(LoginLink, "POST", f"/users/{user}/login-links" if user else "/login-links")

    def create_token(
        self, name: str, scopes: Sequence[str], expires_at: datetime | None = None, project: str | None = None
    ) -> CreatedToken:
        """A token of scopes `read`, `write` or `admin`, for one project or all of yours; it is shown this once."""
        until = expires_at and expires_at.isoformat()
        body = {"name": name, "scopes": list(scopes), "project": project, "expires_at": until}
        return self._transport.read(CreatedToken, "POST", "/tokens", json=body)

    def tokens(self) -> Sequence[Token]:
        """Yours; everybody's, if you administer the service."""
        return list(every(self._transport, TokenPage, "/tokens"))

    def revoke_token(self, token_id: UUID) -> None:
        self._transport.ask("DELETE", f"/tokens/{token_id}")

    def users(self) -> Sequence[User]:
        return list(every(self._transport, UserPage, "/users"))

    def create_user(self, name: str, email: str | None = None, is_admin: bool = False) -> User:
        return self._transport.read(User, "POST", "/users", json={"name": name, "email": email, "is_admin": is_admin})

    def update_user(self, user: str, body: dict[str, Any]) -> User:
        """Changes `email`, `is_admin`, `is_active` or `oidc_subject`."""
        return self._transport.read(User, "PATCH", f"/users/{user}", json=body)

    def end_sessions(self, user: str) -> None:
        """Logs them out of every browser."""
        self._transport.ask("DELETE", f"/users/{user}/sessions")

    def projects(self) -> Sequence[Project]:
        """Those in which you have a role."""
        return list(every(self._transport, ProjectPage, "/projects"))

    def create_project(self, name: str) -> Project:
        return self._transport.read(Project, "POST", "/projects", json={"name": name})

    def rename_project(self, project: str, name: str) -> Project:
        return self._transport.read(Project, "PATCH", f"/projects/{project}", json={"name": name})

    def delete_project(self, project: str) -> None:
        """Only an empty one."""
        self._transport.ask("DELETE", f"/projects/{project}")

    def members(self, project: str) -> Sequence[Member]:
        return [
            Member.model_validate(item) for item in self._transport.ask("GET", f"/projects/{project}/members").json()
        ]

    def set_role(self, project: str, user: str, role: str) -> Member:
        """`viewer`, `launcher` or `admin`."""
        return self._transport.read(Member, "PUT", f"/projects/{project}/members/{user}", json={"role": role})

    def remove_member(self, project: str, user: str) -> None:
        self._transport.ask("DELETE", f"/projects/{project}/members/{user}")

    def audit(
        self,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        project: str | None = None,
    ) -> Iterator[AuditEntry]:
        """Who changed what, newest first; fetched as it is asked for."""
        filters = {"actor": actor, "action": action, "target": target, "project": project}
        return every(self._transport, AuditPage, "/audit", filters)
