"""Which token or browser session a request came with, without its secret."""

from starlette.requests import Request

from backend.auth import secrets
from backend.auth.identity import SESSION_COOKIE

LENGTH = 32


def caller_of(request: Request) -> str:
    """A hash of the token or session that the gate looks at; empty for a request that came with neither.

    Whether they are good is for the gate to say: this only tells one from another. All of the token is hashed, since
    the visible part of it is known to others, who could pass as its owner where no secret is asked for.
    """
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    token = credentials.strip() if scheme.lower() == "bearer" else ""
    secret = token or request.cookies.get(SESSION_COOKIE)
    return secrets.sha256(f"{bool(token)}:{secret}")[:LENGTH] if secret else ""
