"""The dependencies by which a route says whom it lets in."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from backend.auth import access, repository, service
from backend.auth.identity import CSRF_HEADER, SESSION_COOKIE, Principal, Scope
from backend.auth.workers import service as workers
from backend.db import Database
from backend.deps import DatabaseDep
from backend.errors import SAFE_METHODS, ApiError, not_found
from backend.runs import repository as runs
from backend.sweeps import repository as sweeps
from backend.webhooks import repository as webhooks

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
            found = _find(session, bearer, secret)
            if found is None and bearer is not None:
                workers.tell_of_refusal(session, bearer.credentials, stranger(request))
            return found

    principal = await run_in_threadpool(find)
    if principal is None:
        raise _stranger()
    if bearer is None and request.method not in SAFE_METHODS:
        service.check_csrf(principal, request.headers.get(CSRF_HEADER))
    request.state.principal = from_where(request, principal)

    def is_still_welcome(session: Session) -> bool:
        now = _find(session, bearer, secret)
        return now is not None and (now.is_admin, now.roles) == (principal.is_admin, principal.roles)

    request.state.is_still_welcome = is_still_welcome


def from_where(request: Request, principal: Principal) -> Principal:
    """The caller as the audit log names one: with address and request id."""
    address = request.client.host if request.client else None
    return replace(principal, address=address, request_id=getattr(request.state, "request_id", None))


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


def stranger(request: Request) -> Principal:
    """Whoever calls a route that is open to all."""
    return from_where(request, Principal("stranger", frozenset()))


Stranger = Annotated[Principal, Depends(stranger)]


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
    """Whether the caller's token or session still works, for the same projects: for routes that stream on."""
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


def require_of_token(scope: Scope) -> Callable[[Principal], Principal]:
    """A dependency that lets callers in whose token or session is good for this scope somewhere."""

    def guard(principal: Annotated[Principal, Depends(authenticate)]) -> Principal:
        if scope not in principal.scopes:
            has = ", ".join(sorted(principal.scopes)) or "none"
            raise ApiError(HTTPStatus.FORBIDDEN, f"This needs a token of the scope {scope}; yours: {has}.")
        return principal

    guard.scope = scope  # type: ignore[attr-defined]
    return guard


def require_run(scope: Scope) -> Callable[..., Principal]:
    """A dependency of routes with `{run_id}`: lets callers in who may do such things in the run's project."""

    def guard(
        run_id: UUID, principal: Annotated[Principal, Depends(require(scope))], database: DatabaseDep
    ) -> Principal:
        with database.transaction() as session:
            project_id = runs.get_project_id(session, run_id)
        access.check(principal, project_id, scope, not_found("run", run_id))
        return principal

    guard.guarded_path_parameter = "run_id"  # type: ignore[attr-defined]
    return guard


RunReader = Annotated[Principal, Depends(require_run("read"))]
RunWriter = Annotated[Principal, Depends(require_run("write"))]


def require_sweep(scope: Scope) -> Callable[..., Principal]:
    """A dependency of routes with `{sweep_id}`: lets callers in who may do such things in the sweep's project."""

    def guard(
        sweep_id: UUID, principal: Annotated[Principal, Depends(require(scope))], database: DatabaseDep
    ) -> Principal:
        with database.transaction() as session:
            project_id = sweeps.get_project_id(session, sweep_id)
        access.check(principal, project_id, scope, not_found("sweep", sweep_id))
        return principal

    guard.guarded_path_parameter = "sweep_id"  # type: ignore[attr-defined]
    return guard


SweepReader = Annotated[Principal, Depends(require_sweep("read"))]
SweepWriter = Annotated[Principal, Depends(require_sweep("write"))]


def require_project(scope: Scope) -> Callable[..., Principal]:
    """A dependency of routes with `{project}`: lets callers in who may do such things there."""

    def guard(
        project: str, principal: Annotated[Principal, Depends(require_of_token(scope))], database: DatabaseDep
    ) -> Principal:
        with database.transaction() as session:
            found = repository.get_project(session, project)
        access.check(principal, found.id if found else None, scope, not_found("project", project))
        return principal

    guard.guarded_path_parameter = "project"  # type: ignore[attr-defined]
    return guard


def require_webhook(
    webhook_id: UUID, principal: Annotated[Principal, Depends(require_of_token("admin"))], database: DatabaseDep
) -> Principal:
    """A dependency of routes with `{webhook_id}`: lets those in who administer the webhook's project."""
    with database.transaction() as session:
        project_id = webhooks.get_project_id(session, webhook_id)
    access.check(principal, project_id, "admin", not_found("webhook", webhook_id))
    return principal


require_webhook.guarded_path_parameter = "webhook_id"  # type: ignore[attr-defined]
WebhookAdmin = Annotated[Principal, Depends(require_webhook)]

ProjectReader = Annotated[Principal, Depends(require_project("read"))]
ProjectAdmin = Annotated[Principal, Depends(require_project("admin"))]
Manager = Annotated[Principal, Depends(require_of_token("admin"))]
"""Whose token or session is good for administering, be it everything, a project or nothing but themself: the route asks
what."""
Starter = Annotated[Principal, Depends(require("start"))]
Ingester = Annotated[Principal, Depends(require("ingest"))]
Admin = Annotated[Principal, Depends(require("admin"))]


def guarding_scopes(dependant: Dependant) -> set[str]:
    """The scopes that a route asks for, found in its tree of dependencies."""
    scope = getattr(dependant.call, "scope", None)
    scopes = {scope} if scope else set()
    return scopes.union(*(guarding_scopes(child) for child in dependant.dependencies))


def guarded_path_parameters(dependant: Dependant) -> set[str]:
    """The path parameters whose objects a route checks the caller's right to."""
    parameter = getattr(dependant.call, "guarded_path_parameter", None)
    parameters = {parameter} if parameter else set()
    return parameters.union(*(guarded_path_parameters(child) for child in dependant.dependencies))


OWNED = frozenset({"run_id", "webhook_id", "sweep_id", "project"})
"""Path parameters that name what belongs to a project."""
PUBLIC = frozenset(
    {
        ("GET", "/api/v1/health"),
        ("GET", "/api/v1/ready"),
        ("POST", "/api/v1/session"),
        ("GET", "/api/v1/login"),
        ("GET", "/api/v1/login/oidc"),
        ("GET", "/api/v1/login/oidc/callback"),
    }
)


def refuse_open_routes(app: FastAPI) -> None:
    """Raises when a route under /api asks for no scope and is not one of those that are meant to be open, or names an
    object without asking whether the caller may see it."""
    for route in app.routes:
        path = getattr(route, "path", "")
        is_open = not (isinstance(route, APIRoute) and guarding_scopes(route.dependant))
        methods = getattr(route, "methods", None) or {"GET"}
        if path.startswith("/api") and is_open and any((method, path) not in PUBLIC for method in methods):
            raise RuntimeError(
                f"{sorted(methods)} {path} is open to anybody: give it a Reader, Writer, Admin or Ingester"
            )
        if isinstance(route, APIRoute):
            owned = {name for name in OWNED if f"{{{name}}}" in path}
            if unguarded := owned - guarded_path_parameters(route.dependant):
                raise RuntimeError(f"{sorted(methods)} {path} does not ask whose {', '.join(unguarded)} it is")
