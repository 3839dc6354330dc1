"""Before anything of a request's body is read: who calls, and how much of a body is taken."""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from backend import body, errors
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
            body.check_announced(request, limit)
        except Exception as error:  # outside the app's own handlers
            await errors.answer_to(request, error)(scope, receive, send)
            return
        timeout_s = scope["app"].state.settings.body_timeout_s
        await self.app(scope, body.limited(receive, limit, timeout_s), send)
