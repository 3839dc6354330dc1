"""The browser's cookies: out of reach of scripts, and not sent along by other sites' pages."""

from fastapi import Response

from backend.auth.identity import OIDC_COOKIE, SESSION_COOKIE
from backend.settings import Settings

OIDC_COOKIE_PATH = "/api/v1/login"


def set_session_cookie(response: Response, secret: str, settings: Settings) -> None:
    """Strict: no link on another site opens anything logged in but the page itself, which then asks as its own site."""
    response.set_cookie(
        SESSION_COOKIE,
        secret,
        max_age=settings.session_lifetime_s,
        httponly=True,
        samesite="strict",
        secure=settings.is_https,
        path="/",
    )


def set_oidc_cookie(response: Response, state: str, lifetime_s: int, settings: Settings) -> None:
    """Lax: the browser brings it along when the identity provider sends it back."""
    response.set_cookie(
        OIDC_COOKIE,
        state,
        max_age=lifetime_s,
        httponly=True,
        samesite="lax",
        secure=settings.is_https,
        path=OIDC_COOKIE_PATH,
    )


def clear_oidc_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(OIDC_COOKIE, path=OIDC_COOKIE_PATH, httponly=True, samesite="lax", secure=settings.is_https)


def clear_session_cookie(response: Response, settings: Settings) -> None:
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict", secure=settings.is_https)
