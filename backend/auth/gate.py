"""Before anything of a request's body is read: who calls, and how much of a body is taken."""

from http import HTTPStatus

from fastapi import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend import errors
from backend.auth.guard import PUBLIC, admit
from backend.auth.origin import check_origin
from contract.telemetry.events import MAX_BATCH_BYTES

MAX_BODY_BYTES = 2 * 2**20
_LIMITS = {"/api/v1/ingest": MAX_BATCH_BYTES}


class Gate:
    """Pure ASGI. A request under /api that is not for a public route goes on with its caller known, or not at all."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not f"{scope['path']}/".startswith("/api/"):
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        limit = _LIMITS.get(scope["path"], MAX_BODY_BYTES)
        try:
            check_origin(request, scope["app"].state.settings.public_url)
            if (request.method, scope["path"]) not in PUBLIC:
                await admit(request)
            _check_length(_announced(request), limit)
        except Exception as error:  # outside the app's own handlers
            await errors.answer_to(request, error)(scope, receive, send)
            return
        await self.app(scope, _limited(receive, limit), send)


def _announced(request: Request) -> int:
    length = request.headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _limited(receive: Receive, limit: int) -> Receive:
    """What announces no length, or a wrong one, is counted as it comes."""
    num_bytes = 0

    async def counted() -> Message:
        nonlocal num_bytes
        message = await receive()
        num_bytes += len(message.get("body", b""))
        _check_length(num_bytes, limit)
        return message

    return counted


def _check_length(num_bytes: int, limit: int) -> None:
    if num_bytes > limit:
        raise HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body exceeds {limit // 2**20} MiB: send less at once."
        )
