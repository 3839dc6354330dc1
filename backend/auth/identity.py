"""Who is calling, and what they may do where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, get_args
from uuid import UUID

Scope = Literal["read", "write", "start", "ingest", "admin"]
ALL_SCOPES: frozenset[Scope] = frozenset(get_args(Scope))
USER_SCOPES: frozenset[Scope] = frozenset({"read", "write", "admin"})
IMPLIED: dict[Scope, frozenset[Scope]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
    "start": frozenset({"start"}),
    "ingest": frozenset({"ingest"}),
}
"""What a scope includes. No scope includes `start` and `ingest`: only a run's own tokens may report for it."""

Role = Literal["viewer", "launcher", "admin"]
ROLE_SCOPES: Mapping[Role, frozenset[Scope]] = MappingProxyType(
    {"viewer": IMPLIED["read"], "launcher": IMPLIED["write"], "admin": IMPLIED["admin"]}
)
"""What a role in a project allows there."""

SESSION_COOKIE = "foredeck_session"
OIDC_COOKIE = "foredeck_oidc"
CSRF_HEADER = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller."""

    name: str
    """As it stands in the audit log: `user:admin`, `token:admin/ci` or `run:<id>`."""
    scopes: frozenset[Scope]
    """What the token or session may be used for; never more than its user may do."""
    is_admin: bool = False
    """Administers everything, not some projects alone."""
    roles: Mapping[UUID, Role] = field(default_factory=dict)
    """The user's role in each of their projects, by the project's id."""
    user_id: UUID | None = None
    run_id: UUID | None = None
    """The one run that a worker's token reports to."""
    attempt: int | None = None
    """The last of its attempts that the token is good for; None for all."""
    token_id: UUID | None = None
    """Of a worker's token."""
    project_id: UUID | None = None
    """The one project that the caller's token is good for; None for all of its user's."""
    expires_at: datetime | None = None
    """When the caller's token stops working."""
    csrf_token: str | None = None
    """Set for a browser session."""
    address: str | None = None
    """Where the request came from."""
    request_id: str | None = None

    def allows(self, scope: Scope) -> bool:
        """Whether a route of this scope is open to the caller. `admin` is that of everything; which objects `read` and
        `write` extend to is for `allows_in` to say."""
        return scope in self.scopes and (scope != "admin" or self.is_admin)

    def allows_in(self, project_id: UUID, scope: Scope) -> bool:
        """Whether the caller may do such things in a project."""
        role = self.roles.get(project_id)
        return scope in self.scopes and (self.is_admin or (role is not None and scope in ROLE_SCOPES[role]))

    def projects(self, scope: Scope) -> frozenset[UUID] | None:
        """The projects in which the caller may do such things; None for all there are."""
        if self.is_admin and scope in self.scopes:
            return None
        return frozenset(project_id for project_id in self.roles if self.allows_in(project_id, scope))


def effective_scopes(scopes: list[str]) -> frozenset[Scope]:
    """The scopes and what they include; unknown ones give nothing."""
    return frozenset(included for scope in ALL_SCOPES if scope in scopes for included in IMPLIED[scope])
