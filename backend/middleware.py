"""Around every request: its id, its line in the log, headers that keep browsers safe, and the last-resort error."""

import logging
import re
import time
from uuid import uuid4

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend import errors, logs

logger = logging.getLogger("backend.access")

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/api/v1/health", "/api/v1/ready", "/api/v1/ingest"})
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


HTML_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""For pages that name none: text and styles, no script."""


class RequestContext:
    """Pure ASGI, so that streams pass through it untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        with logs.bound(request_id=request_id):
            await self._answer(request, receive, _Recorder(send, request_id))

    async def _answer(self, request: Request, receive: Receive, recorder: "_Recorder") -> None:
        begin = time.perf_counter()
        try:
            await self.app(request.scope, receive, recorder)
        except Exception as error:
            if recorder.status is not None:  # the answer has begun: all that is left is to break it off
                raise
            await errors.on_unexpected(request, error)(request.scope, receive, recorder)
        finally:
            level = logging.DEBUG if request.url.path in _QUIET else logging.INFO
            duration_ms = round(1000 * (time.perf_counter() - begin), 1)
            fields = {"method": request.method, "path": request.url.path}
            logger.log(level, "request", extra={**fields, "status": recorder.status, "duration_ms": duration_ms})


class _Recorder:
    """Adds the headers to the answer and remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.send, self.request_id = send, request_id
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.request_id
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if headers.get("Content-Type", "").startswith("text/html"):
                headers.setdefault("Content-Security-Policy", HTML_POLICY)
        await self.send(message)
