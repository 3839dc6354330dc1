"""Login through the identity provider over HTTP. Browsers come here by links: all answers lead them on."""

import logging
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse

from backend.auth import audit, secrets
from backend.auth.cookies import clear_oidc_cookie, set_oidc_cookie, set_session_cookie
from backend.auth.guard import Stranger
from backend.auth.identity import OIDC_COOKIE, SESSION_COOKIE, Principal
from backend.auth.oidc import repository, service
from backend.auth.oidc.provider import Attempt, Provider, ProviderError
from backend.auth.oidc.schemas import LoginMethods, OidcLoginRead
from backend.auth.service import end_former_session, open_session
from backend.db import Database
from backend.deps import DatabaseDep, SettingsDep
from backend.errors import ApiError

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/login", tags=["auth"])

LIFETIME_S = 600
Parameter = Annotated[str | None, Query(max_length=4096)]


def get_provider(request: Request, settings: SettingsDep) -> Provider:
    """Raises ApiError (404) where none is configured."""
    if settings.oidc_issuer is None:
        detail = "Nobody logs in through an identity provider here: FOREDECK_OIDC_ISSUER is not set."
        raise ApiError(HTTPStatus.NOT_FOUND, detail)
    if not hasattr(request.app.state, "oidc_provider"):
        request.app.state.oidc_provider = Provider(settings)
    provider: Provider = request.app.state.oidc_provider
    return provider


ProviderDep = Annotated[Provider, Depends(get_provider)]


@router.get("", operation_id="login_methods", summary="How people log in here")
def get_login_methods(request: Request, settings: SettingsDep) -> LoginMethods:
    if settings.oidc_issuer is None:
        return LoginMethods(oidc=None)
    return LoginMethods(oidc=OidcLoginRead(name=settings.oidc_name, path=request.url_for("begin_oidc_login").path))


@router.get("/oidc", include_in_schema=False)
def begin_oidc_login(
    provider: ProviderDep, database: DatabaseDep, settings: SettingsDep, stranger: Stranger
) -> RedirectResponse:
    """Sends the browser to the identity provider."""
    attempt = Attempt(secrets.new_secret(), secrets.new_secret(), secrets.new_secret())
    try:
        address = provider.authorization_url(attempt)
    except ProviderError as error:
        return RedirectResponse(_noted(database, stranger, "provider", str(error)), HTTPStatus.SEE_OTHER)
    with database.transaction() as session:
        repository.insert_login(session, attempt, timedelta(seconds=LIFETIME_S))
    response = RedirectResponse(address, HTTPStatus.SEE_OTHER)
    set_oidc_cookie(response, attempt.state, LIFETIME_S, settings)
    return response


@router.get("/oidc/callback", include_in_schema=False)
def finish_oidc_login(
    request: Request,
    provider: ProviderDep,
    database: DatabaseDep,
    settings: SettingsDep,
    stranger: Stranger,
    state: Parameter = None,
    code: Parameter = None,
    error: Parameter = None,
    iss: Parameter = None,
) -> RedirectResponse:
    """The provider sends the browser back here."""
    response = RedirectResponse("/login", HTTPStatus.SEE_OTHER)  # which finds the new session by itself
    clear_oidc_cookie(response, settings)
    attempt = _take(database, request.cookies.get(OIDC_COOKIE), state)
    try:
        if attempt is None:
            raise service.RefusedError("state", "no login of this browser has this state")
        if code is None or error is not None or iss not in (None, provider.issuer):
            raise ProviderError(f"it answers {error!r:.200}")
        claims = provider.claims(code, attempt)
        with database.transaction() as session:
            user = service.find_user(session, settings, claims, stranger)
            end_former_session(session, request.cookies.get(SESSION_COOKIE))
            secret, _ = open_session(session, user, stranger, settings.session_lifetime_s, by="oidc")
    except ProviderError as problem:
        response.headers["Location"] = _noted(database, stranger, "provider", str(problem))
    except service.RefusedError as refusal:
        response.headers["Location"] = _noted(database, stranger, refusal.reason, str(refusal))
    else:
        set_session_cookie(response, secret, settings)
    return response


def _take(database: Database, cookie: str | None, state: str | None) -> Attempt | None:
    """The login that comes back, in the browser that began it."""
    if not cookie or not state or not secrets.is_equal(cookie, state):
        return None
    with database.transaction() as session:
        return repository.take_login(session, state)


def _noted(database: Database, stranger: Principal, reason: service.Reason, why: str) -> str:
    """The login page's address, which has words of its own for the reason; the exact one stays here."""
    logger.warning("login through the identity provider failed", extra={"reason": reason, "error": why})
    with database.transaction() as session:
        audit.record(session, stranger, "session.refuse", "oidc", reason=reason, why=why)
    return f"/login#problem={reason}"
