"""Users over HTTP."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from backend import etag
from backend.auth.guard import Admin
from backend.auth.schemas import LoginLinkRead, UserRead
from backend.auth.users import service
from backend.auth.users.schemas import UserCreate, UserPage, UserUpdate
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep, SettingsDep
from backend.etag import IfMatch
from backend.idempotency.route import Idempotent, IdempotentRoute

router = APIRouter(prefix="/users", tags=["users"], route_class=IdempotentRoute)


@router.get("", operation_id="users_list", summary="List users, by name")
def list_users(_: Admin, session: SessionDep, limit: Limit = 50, cursor: Cursor = None) -> UserPage:
    return service.list_page(session, limit, cursor)


@router.post("", operation_id="users_create", status_code=HTTPStatus.CREATED, summary="Add a user")
def create_user(
    body: UserCreate,
    request: Request,
    response: Response,
    admin: Admin,
    session: SessionDep,
    settings: SettingsDep,
    _: Idempotent,
) -> UserRead:
    user = service.create(session, settings, body, admin)
    response.headers["Location"] = request.url_for("get_user", user=user.name).path
    return user


@router.get("/{user}", operation_id="users_get", summary="Get a user", response_model=UserRead)
def get_user(user: str, request: Request, _: Admin, session: SessionDep) -> Response:
    return etag.answer(request, service.read(session, user), UserUpdate)


@router.patch("/{user}", operation_id="users_update", summary="Change a user, or shut one out", response_model=UserRead)
def update_user(
    user: str,
    body: UserUpdate,
    request: Request,
    admin: Admin,
    session: SessionDep,
    settings: SettingsDep,
    if_match: IfMatch = None,
) -> Response:
    return etag.answer(request, service.update(session, settings, user, body, admin, if_match), UserUpdate)


@router.post(
    "/{user}/login-links",
    operation_id="users_login_link",
    status_code=HTTPStatus.CREATED,
    summary="Make a one-time login link for a user",
)
def create_login_link(user: str, admin: Admin, session: SessionDep, settings: SettingsDep) -> LoginLinkRead:
    return service.make_login_link(session, settings, user, admin)


@router.delete(
    "/{user}/sessions",
    operation_id="users_end_sessions",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Log a user out everywhere",
)
def end_sessions(user: str, admin: Admin, session: SessionDep) -> None:
    service.end_sessions(session, user, admin)
