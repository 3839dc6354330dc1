"""Projects and their members over HTTP."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from backend.auth.guard import Admin, ProjectAdmin, ProjectReader, Reader
from backend.auth.projects import service
from backend.auth.projects.schemas import MemberRead, MemberWrite, ProjectPage, ProjectRead, ProjectWrite
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep
from backend.idempotency.route import Idempotent, IdempotentRoute

router = APIRouter(prefix="/projects", tags=["projects"], route_class=IdempotentRoute)


@router.get("", operation_id="projects_list", summary="List the projects in which you have a role, by name")
def list_projects(reader: Reader, session: SessionDep, limit: Limit = 50, cursor: Cursor = None) -> ProjectPage:
    return service.list_visible(session, reader, limit, cursor)


@router.post("", operation_id="projects_create", status_code=HTTPStatus.CREATED, summary="Make a project")
def create_project(
    body: ProjectWrite, request: Request, response: Response, admin: Admin, session: SessionDep, _: Idempotent
) -> ProjectRead:
    project = service.create(session, body, admin)
    response.headers["Location"] = request.url_for("get_project", project=project.name).path
    return project


@router.get("/{project}", operation_id="projects_get", summary="Get a project")
def get_project(project: str, reader: ProjectReader, session: SessionDep) -> ProjectRead:
    return service.read(session, project, reader)


@router.patch("/{project}", operation_id="projects_update", summary="Rename a project")
def update_project(project: str, body: ProjectWrite, _: ProjectAdmin, admin: Admin, session: SessionDep) -> ProjectRead:
    return service.rename(session, project, body, admin)


@router.delete(
    "/{project}", operation_id="projects_delete", status_code=HTTPStatus.NO_CONTENT, summary="Remove an empty project"
)
def delete_project(project: str, _: ProjectAdmin, admin: Admin, session: SessionDep) -> None:
    service.remove(session, project, admin)


@router.get("/{project}/members", operation_id="members_list", summary="List who has a role in a project")
def list_members(project: str, _: ProjectReader, session: SessionDep) -> list[MemberRead]:
    return service.list_members(session, project)


@router.put("/{project}/members/{user}", operation_id="members_set", summary="Give a user a role in a project")
def set_member(project: str, user: str, body: MemberWrite, admin: ProjectAdmin, session: SessionDep) -> MemberRead:
    return service.set_role(session, project, user, body, admin)


@router.delete(
    "/{project}/members/{user}",
    operation_id="members_remove",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Take a user's role in a project away",
)
def remove_member(project: str, user: str, admin: ProjectAdmin, session: SessionDep) -> None:
    service.remove_member(session, project, user, admin)
