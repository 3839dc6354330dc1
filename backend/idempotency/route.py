"""Routes that heed the header Idempotency-Key.

The dependency, after the route's guard, claims the key in the route's transaction. The route's class sees the finished
answer before that transaction is committed, and stores it there. docs/decisions/0016-idempotency-keys.md says why.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from backend.auth.guard import authenticate
from backend.auth.identity import Principal
from backend.caller import caller_of
from backend.deps import SessionDep
from backend.idempotency import repository, service
from backend.models import IdempotencyKey

REPLAYED = "Idempotency-Replayed"
KEPT_HEADERS = ("content-type", "etag", "location")
Key = Annotated[
    str | None,
    Header(
        alias=service.HEADER,
        pattern="^[!-~]{1,200}$",
        description="Any text of your own, such as a UUID. A request that is repeated with it within 24 h is carried "
        "out once, and answered as the first time.",
    ),
]


class _Repeated(Exception):
    """The request was answered before."""

    def __init__(self, row: IdempotencyKey) -> None:
        self.answer = Response(row.body, row.status, {**row.headers, REPLAYED: "true"})


@dataclass(frozen=True, slots=True)
class _Claim:
    """A key that is this request's, in its transaction."""

    session: Session
    caller: str
    key: str
    fingerprint: str
    is_secret: bool

    def keep(self, response: Response) -> None:
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        row = IdempotencyKey(
            caller=self.caller,
            key=self.key,
            fingerprint=self.fingerprint,
            status=response.status_code,
            headers=headers,
            body=None if self.is_secret else bytes(response.body),
        )
        repository.put(self.session, row)


async def _body(request: Request) -> bytes:
    return await request.body()


def _claiming(is_secret: bool) -> Callable[..., None]:
    def claim(
        request: Request,
        session: SessionDep,
        _: Annotated[Principal, Depends(authenticate)],
        body: Annotated[bytes, Depends(_body)],
        key: Key = None,
    ) -> None:
        if key is None:
            return
        caller = caller_of(request)
        fingerprint = service.fingerprint(request.method, request.url.path, request.url.query, body)
        if found := service.claim(session, caller, key, fingerprint):
            raise _Repeated(found)
        request.state.idempotency_claim = _Claim(session, caller, key, fingerprint, is_secret)

    claim.takes_idempotency_key = True  # type: ignore[attr-defined]
    return claim


def is_idempotent(dependant: Dependant) -> bool:
    """Whether a route takes a key."""
    takes = getattr(dependant.call, "takes_idempotency_key", False)
    return takes or any(is_idempotent(child) for child in dependant.dependencies)


Idempotent = Annotated[None, Depends(_claiming(is_secret=False))]
"""For a route that makes something in its SessionDep; after its guard, which asks anew whether the caller may."""
IdempotentSecret = Annotated[None, Depends(_claiming(is_secret=True))]
"""The same where the answer shows a secret once: it is not stored, and a repetition is refused instead of repeated."""


class IdempotentRoute(APIRoute):
    """The `route_class` of routers with such routes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_once(request: Request) -> Response:
            try:
                response = await handle(request)
            except _Repeated as repeated:
                return repeated.answer
            claim: _Claim | None = getattr(request.state, "idempotency_claim", None)
            if claim is not None:
                await run_in_threadpool(claim.keep, response)
            return response

        return handle_once
