"""Sessions, login links and tokens over HTTP."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter, Request, Response

from backend.auth import service
from backend.auth.guard import Admin, Reader
from backend.auth.identity import SESSION_COOKIE
from backend.auth.schemas import LoginLinkRead, SessionCreate, SessionRead, TokenCreate, TokenCreated, TokenRead
from backend.deps import SessionDep, SettingsDep
from backend.idempotency.route import IdempotentRoute, IdempotentSecret

router = APIRouter(tags=["auth"], route_class=IdempotentRoute)


@router.post("/session", operation_id="session_create", summary="Log in with the code of a one-time link")
def create_session(body: SessionCreate, response: Response, session: SessionDep, settings: SettingsDep) -> SessionRead:
    secret, read = service.log_in(session, body.code, settings.session_lifetime_s)
    response.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=settings.session_lifetime_s,
        httponly=True,
        samesite="strict",
        secure=settings.is_https,
        path="/",
    )
    return read


@router.get("/session", operation_id="session_get", summary="Who is logged in")
def get_session(principal: Reader, session: SessionDep) -> SessionRead:
    return service.read_session(session, principal)


@router.delete("/session", operation_id="session_delete", status_code=HTTPStatus.NO_CONTENT, summary="Log out")
def delete_session(request: Request, response: Response, _: Reader, session: SessionDep) -> None:
    service.log_out(session, request.cookies.get(SESSION_COOKIE))
    response.delete_cookie(SESSION_COOKIE, path="/")


@router.post(
    "/login-links",
    operation_id="login_links_create",
    status_code=HTTPStatus.CREATED,
    summary="Make a one-time login link",
)
def create_login_link(principal: Admin, session: SessionDep, settings: SettingsDep) -> LoginLinkRead:
    return service.make_login_link(session, settings, principal)


@router.get("/tokens", operation_id="tokens_list", summary="List API tokens")
def list_tokens(_: Admin, session: SessionDep) -> list[TokenRead]:
    return service.list_tokens(session)


@router.post("/tokens", operation_id="tokens_create", status_code=HTTPStatus.CREATED, summary="Make an API token")
def create_token(body: TokenCreate, principal: Admin, session: SessionDep, _: IdempotentSecret) -> TokenCreated:
    return service.create_token(session, body, principal)


@router.delete(
    "/tokens/{token_id}", operation_id="tokens_delete", status_code=HTTPStatus.NO_CONTENT, summary="Revoke an API token"
)
def delete_token(token_id: UUID, principal: Admin, session: SessionDep) -> None:
    service.revoke_token(session, token_id, principal)
