"""Which token or browser session a request came with, named by what of it is no secret."""

from starlette.requests import Request

from backend.auth import secrets
from backend.auth.identity import SESSION_COOKIE


def caller_of(request: Request) -> str:
    """`token:<prefix>`, `session:<hash>`, or nothing for a request that came with neither.

    Whether they are good is for the gate to say: this only tells one from another.
    """
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme:
        parts = secrets.split_token(credentials.strip()) if scheme.lower() == "bearer" else None
        return f"token:{parts[0]}" if parts else ""
    cookie = request.cookies.get(SESSION_COOKIE)
    return f"session:{secrets.sha256(cookie)[:32]}" if cookie else ""
