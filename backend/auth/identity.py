"""Who is calling."""

from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

Scope = Literal["read", "write", "ingest", "admin"]
ALL_SCOPES: frozenset[Scope] = frozenset(get_args(Scope))
USER_SCOPES: frozenset[Scope] = frozenset({"read", "write", "admin"})
IMPLIED: dict[Scope, frozenset[Scope]] = {
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
    "ingest": frozenset({"ingest"}),
}
"""What a scope includes. No scope includes `ingest`: only a run's own token may report for it."""

SESSION_COOKIE = "foredeck_session"
CSRF_HEADER = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller."""

    name: str
    """As it stands in the audit log: `user:admin`, `token:ci` or `run:<id>`."""
    scopes: frozenset[Scope]
    user_id: UUID | None = None
    run_id: UUID | None = None
    """The one run that a worker's token reports to."""
    csrf_token: str | None = None
    """Set for a browser session."""

    def allows(self, scope: Scope) -> bool:
        return scope in self.scopes


def effective_scopes(scopes: list[str]) -> frozenset[Scope]:
    """The scopes and what they include; unknown ones give nothing."""
    return frozenset(included for scope in ALL_SCOPES if scope in scopes for included in IMPLIED[scope])
