"""Rules of tokens: whoever makes one gives away no more than they have."""

from datetime import UTC, datetime
from http import HTTPStatus
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import audit
from backend.auth.access import project_for
from backend.auth.identity import ROLE_SCOPES, USER_SCOPES, Principal, Scope, effective_scopes
from backend.auth.repository import get_user
from backend.auth.service import issue
from backend.auth.tokens import repository
from backend.auth.tokens.schemas import TokenCreate, TokenCreated, TokenPage, TokenRead
from backend.cursor import cut, decode
from backend.errors import ApiError, ProblemError, invalid, not_found
from backend.models import ApiToken, Project


def list_visible(session: Session, principal: Principal, limit: int, cursor: str | None) -> TokenPage:
    """The caller's own; everybody's for one who administers everything."""
    user_id = None if principal.allows("admin") else principal.user_id
    after = decode(cursor, datetime, UUID) if cursor else None
    rows = repository.list_page(session, limit + 1, after, user_id, principal.project_id)
    page, next_cursor = cut(rows, limit, lambda row: (row[0].created_at, row[0].id))
    return TokenPage(items=[TokenRead.model_validate(_shown(*row)) for row in page], next_cursor=next_cursor)


def _shown(token: ApiToken, user: str | None, project: str | None) -> dict[str, object]:
    columns = ("id", "prefix", "name", "scopes", "created_at", "expires_at", "last_used_at")
    return {"user": user, "project": project, **{name: getattr(token, name) for name in columns}}


def create(session: Session, body: TokenCreate, principal: Principal) -> TokenCreated:
    """Raises ApiError: 422 for more than the caller has, whether by scope, project or time."""
    user = get_user(session, principal.user_id) if principal.user_id else None
    if user is None:
        raise ApiError(HTTPStatus.FORBIDDEN, "Tokens belong to users, and this caller is none.")
    project = project_for(session, principal, body.project, "read") if body.project else None
    if problems := [*_expiry_problems(body, principal), *_scope_problems(body, principal, project)]:
        raise invalid(problems)
    project_id = project.id if project else None
    token, row = issue(
        session, body.name, list(body.scopes), user.id, expires_at=body.expires_at, project_id=project_id
    )
    audit.record(session, principal, "token.create", row.id, project_id, name=row.name, scopes=row.scopes)
    return TokenCreated.model_validate({**_shown(row, user.name, project.name if project else None), "token": token})


def _expiry_problems(body: TokenCreate, principal: Principal) -> list[ProblemError]:
    until = body.expires_at
    if until is not None and until <= datetime.now(UTC):
        return [ProblemError(pointer="/expires_at", detail="must lie in the future", value=until.isoformat())]
    if principal.expires_at is not None and (until is None or until > principal.expires_at):
        detail = f"must be no later than that of the token you call with: {principal.expires_at.isoformat()}"
        return [ProblemError(pointer="/expires_at", detail=detail, value=until and until.isoformat())]
    return []


def _scope_problems(body: TokenCreate, principal: Principal, project: Project | None) -> list[ProblemError]:
    if project is None and principal.project_id is not None:
        detail = "must be the project of the token you call with, which is good for no other"
        return [ProblemError(pointer="/project", detail=detail)]
    allowed = _scopes_to_give(principal, project)
    if excess := effective_scopes(list(body.scopes)) - allowed:
        where = f"in the project {project.name}" if project else "in your projects"
        yours = ", ".join(sorted(allowed)) or "none"
        detail = f"holds more than you may do {where}: {', '.join(sorted(excess))}; yours: {yours}"
        return [ProblemError(pointer="/scopes", detail=detail, value=", ".join(body.scopes))]
    return []


def _scopes_to_give(principal: Principal, project: Project | None) -> frozenset[Scope]:
    if project is not None:
        return frozenset(scope for scope in USER_SCOPES if principal.allows_in(project.id, scope))
    by_role = (ROLE_SCOPES[role] for role in principal.roles.values())
    return principal.scopes & (USER_SCOPES if principal.is_admin else frozenset[Scope]().union(*by_role))


def revoke(session: Session, token_id: UUID, principal: Principal) -> None:
    """Revoking twice is fine: what counts is that it no longer works."""
    token = repository.get(session, token_id)
    if token is None or not _may_revoke(principal, token):
        raise not_found("token", token_id)
    if token.revoked_at is None:
        token.revoked_at = datetime.now(UTC)
        audit.record(session, principal, "token.revoke", token_id, token.project_id, name=token.name)


def _may_revoke(principal: Principal, token: ApiToken) -> bool:
    is_within = principal.project_id in (None, token.project_id)
    return principal.allows("admin") or (token.user_id == principal.user_id and is_within)
