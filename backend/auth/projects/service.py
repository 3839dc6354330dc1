"""Rules of projects and of roles in them."""

from http import HTTPStatus

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.auth import audit
from backend.auth.access import DEFAULT_PROJECT
from backend.auth.identity import Principal
from backend.auth.projects import repository
from backend.auth.projects.schemas import MemberRead, MemberWrite, ProjectPage, ProjectRead, ProjectWrite
from backend.auth.repository import get_project
from backend.auth.users import repository as users
from backend.cursor import cut, decode
from backend.errors import ApiError, ProblemError, conflict, not_found
from backend.models import Project, User


def list_visible(session: Session, principal: Principal, limit: int, cursor: str | None) -> ProjectPage:
    after = decode(cursor, str) if cursor else None
    rows = repository.list_page(session, limit + 1, after, principal.projects("read"))
    page, next_cursor = cut(rows, limit, lambda row: (row[0].name,))
    return ProjectPage(items=[_read(principal, *row) for row in page], next_cursor=next_cursor)


def read(session: Session, name: str, principal: Principal) -> ProjectRead:
    return _read(principal, *repository.get_counted(session, _get(session, name).id))


def _read(principal: Principal, project: Project, num_runs: int, num_members: int) -> ProjectRead:
    return ProjectRead(
        id=project.id,
        name=project.name,
        role="admin" if principal.is_admin else principal.roles[project.id],
        num_runs=num_runs,
        num_members=num_members,
        created_at=project.created_at,
    )


def create(session: Session, body: ProjectWrite, principal: Principal) -> ProjectRead:
    project = repository.insert(session, body.name)
    if project is None:
        raise _name_is_taken(body.name)
    audit.record(session, principal, "project.create", project.name, project.id)
    return _read(principal, project, 0, 0)


def rename(session: Session, name: str, body: ProjectWrite, principal: Principal) -> ProjectRead:
    project = _get_locked(session, name)
    if body.name != name:
        if get_project(session, body.name):
            raise _name_is_taken(body.name)
        project.name = body.name
        session.flush()
        audit.record(session, principal, "project.rename", body.name, project.id, former_name=name)
    return read(session, body.name, principal)


def remove(session: Session, name: str, principal: Principal) -> None:
    """Only an empty one. Its members' roles and its tokens go with it; its entries in the audit log stay."""
    project = _get_locked(session, name)
    if num_runs := repository.count_runs(session, project.id):
        raise conflict(f"Project {name} stays: {num_runs} runs belong to it.")
    try:
        with session.begin_nested():
            session.delete(project)
    except IntegrityError as error:
        raise conflict(f"Project {name} stays: other things than runs belong to it.") from error
    audit.record(session, principal, "project.remove", name)


def list_members(session: Session, name: str) -> list[MemberRead]:
    return [MemberRead.model_validate(row) for row in repository.list_members(session, _get(session, name).id)]


def set_role(session: Session, name: str, user_name: str, body: MemberWrite, principal: Principal) -> MemberRead:
    """Twice is as once."""
    project, user = _get(session, name), _get_user(session, user_name)
    repository.set_role(session, project.id, user.id, body.role)
    audit.record(session, principal, "member.set", user.name, project.id, role=body.role)
    return MemberRead(user=user.name, role=body.role, is_active=user.is_active)


def remove_member(session: Session, name: str, user_name: str, principal: Principal) -> None:
    """Twice is as once."""
    project, user = _get(session, name), _get_user(session, user_name)
    if repository.delete_member(session, project.id, user.id):
        audit.record(session, principal, "member.remove", user.name, project.id)


def _get(session: Session, name: str) -> Project:
    project = get_project(session, name)
    if project is None:
        raise not_found("project", name)
    return project


def _get_locked(session: Session, name: str) -> Project:
    project = repository.get_locked(session, name)
    if project is None:
        raise not_found("project", name)
    if name == DEFAULT_PROJECT:
        raise conflict(f"Project {name} stays as it is: runs that name no project go there.")
    return project


def _get_user(session: Session, name: str) -> User:
    user = users.get(session, name)
    if user is None:
        raise not_found("user", name)
    return user


def _name_is_taken(name: str) -> ApiError:
    error = ProblemError(pointer="/name", detail="there is a project of this name", value=name)
    return ApiError(HTTPStatus.CONFLICT, f"There is a project {name} already.", errors=[error])
