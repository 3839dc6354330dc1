"""Limits before the gate: too many requests cost neither a look into the database nor the reading of a body."""

from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend import errors
from backend.auth.guard import PUBLIC
from backend.caller import caller_of
from backend.errors import ApiError
from backend.rate_limit.limiter import Limiter, Verdict, Visit
from backend.rate_limit.policy import neighbourhood

_LOGINS = frozenset({"/api/v1/session", "/api/v1/login/oidc", "/api/v1/login/oidc/callback"})
_UNLIMITED = frozenset({"/api/v1/health"})
"""It touches nothing, and who asks must not be told that the service is gone."""


class RateLimits:
    """Pure ASGI. Answers 429 to those who send too much, and tells the others how much is left."""

    def __init__(self, app: ASGIApp, limiter: Limiter) -> None:
        self.app, self.limiter = app, limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not f"{path}/".startswith("/api/") or path in _UNLIMITED:
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        visit = _visit(request)
        verdict = await run_in_threadpool(self.limiter.before, visit)
        if not verdict.is_allowed:
            await errors.problem_response(request, _refusal(verdict))(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                now = await self._judge(scope, visit, verdict, message["status"])
                MutableHeaders(scope=message).update(now.policy.headers(now.left))
            await send(message)

        await self.app(scope, receive, counted)

    async def _judge(self, scope: Scope, visit: Visit, verdict: Verdict, status: int) -> Verdict:
        is_admitted = "principal" in scope.get("state", {})
        if is_admitted and verdict.policy.name == visit.kind:
            return verdict
        return await run_in_threadpool(self.limiter.after, visit, verdict, is_admitted, status)


def _visit(request: Request) -> Visit:
    path = request.url.path
    is_public = (request.method, path) in PUBLIC
    address = neighbourhood(request.client.host if request.client else "")
    if is_public and path in _LOGINS:
        return Visit(address, "", "login")
    if path == "/api/v1/ready":
        return Visit(address, "", "probe")
    return Visit(address, "" if is_public else caller_of(request), "ingest" if path == "/api/v1/ingest" else "caller")


def _refusal(verdict: Verdict) -> ApiError:
    policy, wait_s = verdict.policy, verdict.policy.wait_s(verdict.left)
    detail = f"{_WHAT[policy.name]}, {policy.limit} a minute are let in. Try again in {wait_s} s."
    return ApiError(
        HTTPStatus.TOO_MANY_REQUESTS, detail, headers={"Retry-After": str(wait_s), **policy.headers(verdict.left)}
    )


_WHAT = {
    "caller": "Too many requests of this token or session",
    "ingest": "Too many batches of this run's worker",
    "stranger": "Too many requests of this address without a valid token or session",
    "probe": "Too many requests of this address",
    "login": "Too many failed logins of this address",
}
