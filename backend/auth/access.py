"""Which objects a caller may see and change."""

from http import HTTPStatus
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import repository
from backend.auth.identity import Principal, Scope
from backend.errors import ApiError, ProblemError, invalid
from backend.models import Project

DEFAULT_PROJECT = "default"
_ROLE_OF: dict[Scope, str] = {"read": "viewer", "write": "launcher", "admin": "admin"}


def check(principal: Principal, project_id: UUID | None, scope: Scope, missing: ApiError) -> None:
    """Lets callers of this scope in the object's project pass.

    Raises ApiError: `missing` for one who may not even see the object, or where there is none (no project), so that
    nobody learns of what others have; 403 for one who sees it and may do no more.
    """
    if project_id is None or not principal.allows_in(project_id, "read"):
        raise missing
    if not principal.allows_in(project_id, scope):
        detail = f"This needs the role {_ROLE_OF[scope]} in the object's project, and a token of scope {scope}."
        raise ApiError(HTTPStatus.FORBIDDEN, detail)


def project_for(session: Session, principal: Principal, name: str | None, scope: Scope = "write") -> Project:
    """The project of that name, or for none the one that goes without saying: `default`, or the caller's only one.

    Raises ApiError: 422 where the caller sees no such project or has to name one; 403 where they may only look.
    """
    visible = repository.list_projects(session, principal.projects("read"))
    if name is None:
        usable = [project for project in visible if principal.allows_in(project.id, scope)]
        default = [project for project in usable if project.name == DEFAULT_PROJECT]
        found = default or (usable if len(usable) == 1 else [])
    else:
        found = [project for project in visible if project.name == name]
    if not found:
        names = ", ".join(project.name for project in visible) or "none"
        detail = f"no such project; yours: {names}" if name else f"say which project; yours: {names}"
        raise invalid([ProblemError(pointer="/project", detail=detail, value=name)])
    check(principal, found[0].id, scope, invalid([ProblemError(pointer="/project", detail="no such project")]))
    return found[0]
