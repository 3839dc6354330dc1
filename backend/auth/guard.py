"""The dependencies by which a route says whom it lets in."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from backend.auth import service
from backend.auth.identity import CSRF_HEADER, SESSION_COOKIE, Principal, Scope
from backend.db import Database
from backend.errors import SAFE_METHODS, ApiError

_bearer = HTTPBearer(auto_error=False, description="An API token, fdk_...")
_cookie = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, description="A browser session")


async def admit(request: Request) -> None:
    """Notes the caller in the request's state. Raises ApiError: 401 for strangers, 403 for a change that a foreign page
    may have sent.

    Its short transaction has ended before the route starts, so that a route that waits or streams holds no connection.
    """
    bearer, secret = await _bearer(request), await _cookie(request)
    database: Database = request.app.state.database

    def find() -> Principal | None:
        with database.transaction() as session:
            return _find(session, bearer, secret)

    principal = await run_in_threadpool(find)
    if principal is None:
        raise _stranger()
    if bearer is None and request.method not in SAFE_METHODS:
        service.check_csrf(principal, request.headers.get(CSRF_HEADER))
    request.state.principal = principal
    request.state.is_still_welcome = lambda session: _find(session, bearer, secret) is not None


def _find(session: Session, bearer: HTTPAuthorizationCredentials | None, secret: str | None) -> Principal | None:
    if bearer is not None:
        return service.principal_of_token(session, bearer.credentials)
    return service.principal_of_session(session, secret) if secret else None


def _stranger() -> ApiError:
    return ApiError(
        HTTPStatus.UNAUTHORIZED,
        "Log in, or send a valid API token: Authorization: Bearer fdk_...",
        headers={"WWW-Authenticate": "Bearer"},
    )


def authenticate(
    request: Request,
    _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],  # for the OpenAPI document
    __: Annotated[str | None, Depends(_cookie)],
) -> Principal:
    """The caller that the gate let in, or a 401."""
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is None:
        raise _stranger()
    return principal


def watch(request: Request, _: Annotated[Principal, Depends(authenticate)]) -> Callable[[Session], bool]:
    """Whether the caller's token or session still works: for routes that stream on."""
    is_still_welcome: Callable[[Session], bool] = request.state.is_still_welcome
    return is_still_welcome


Watch = Annotated[Callable[[Session], bool], Depends(watch)]


def require(scope: Scope) -> Callable[[Principal], Principal]:
    """A dependency that lets callers of this scope in and answers 403 to others."""

    def guard(principal: Annotated[Principal, Depends(authenticate)]) -> Principal:
        if not principal.allows(scope):
            has = ", ".join(sorted(principal.scopes)) or "none"
            raise ApiError(HTTPStatus.FORBIDDEN, f"This needs the scope {scope}; yours: {has}.")
        return principal

    guard.scope = scope  # type: ignore[attr-defined]
    return guard


Reader = Annotated[Principal, Depends(require("read"))]
Writer = Annotated[Principal, Depends(require("write"))]
Ingester = Annotated[Principal, Depends(require("ingest"))]
Admin = Annotated[Principal, Depends(require("admin"))]


def guarding_scopes(dependant: Dependant) -> set[str]:
    """The scopes that a route asks for, found in its tree of dependencies."""
    scope = getattr(dependant.call, "scope", None)
    scopes = {scope} if scope else set()
    return scopes.union(*(guarding_scopes(child) for child in dependant.dependencies))


PUBLIC = frozenset({("GET", "/api/v1/health"), ("GET", "/api/v1/ready"), ("POST", "/api/v1/session")})


def refuse_open_routes(app: FastAPI) -> None:
    """Raises when a route under /api asks for no scope and is not one of the three that are meant to be open."""
    for route in app.routes:
        path = getattr(route, "path", "")
        is_open = not (isinstance(route, APIRoute) and guarding_scopes(route.dependant))
        methods = getattr(route, "methods", None) or {"GET"}
        if path.startswith("/api") and is_open and any((method, path) not in PUBLIC for method in methods):
            raise RuntimeError(
                f"{sorted(methods)} {path} is open to anybody: give it a Reader, Writer, Admin or Ingester"
            )
