"""Sessions and login links over HTTP."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from backend.auth import service
from backend.auth.cookies import clear_session_cookie, set_session_cookie
from backend.auth.guard import Manager, Reader, Stranger
from backend.auth.identity import SESSION_COOKIE
from backend.auth.schemas import LoginLinkRead, SessionCreate, SessionRead
from backend.deps import DatabaseDep, SessionDep, SettingsDep
from backend.errors import ApiError

router = APIRouter(tags=["auth"])


@router.post("/session", operation_id="session_create", summary="Log in with the code of a one-time link")
def create_session(
    body: SessionCreate,
    request: Request,
    response: Response,
    stranger: Stranger,
    database: DatabaseDep,
    settings: SettingsDep,
) -> SessionRead:
    with database.transaction() as session:  # a refusal is noted, too: it is raised after the commit
        opened = service.log_in(session, body.code, stranger, settings.session_lifetime_s)
        if opened:
            service.end_former_session(session, request.cookies.get(SESSION_COOKIE))
    if opened is None:
        detail = "This login link was used before or has expired. Make a new one with `foredeck login`."
        raise ApiError(HTTPStatus.UNAUTHORIZED, detail)
    secret, read = opened
    set_session_cookie(response, secret, settings)
    return read


@router.get("/session", operation_id="session_get", summary="Who is logged in")
def get_session(principal: Reader, session: SessionDep) -> SessionRead:
    return service.read_session(session, principal)


@router.delete("/session", operation_id="session_delete", status_code=HTTPStatus.NO_CONTENT, summary="Log out")
def delete_session(
    request: Request,
    response: Response,
    principal: Reader,
    session: SessionDep,
    settings: SettingsDep,
    everywhere: Annotated[bool, Query(description="In all browsers")] = False,
) -> None:
    service.log_out(session, request.cookies.get(SESSION_COOKIE), principal, everywhere)
    clear_session_cookie(response, settings)


@router.post(
    "/login-links",
    operation_id="login_links_create",
    status_code=HTTPStatus.CREATED,
    summary="Make a one-time login link for yourself",
)
def create_login_link(principal: Manager, session: SessionDep, settings: SettingsDep) -> LoginLinkRead:
    return service.make_login_link(session, settings, principal)
