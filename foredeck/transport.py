"""HTTP: the token, the prefix, problems as errors, and trying again where that can do no harm."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import random
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from foredeck.errors import ForedeckError, Problem
from foredeck.models.base import Versioned

Model = TypeVar("Model", bound=BaseModel)

TIMEOUT_S = 30.0
MAX_PAUSE_S = 8.0
SAFE = frozenset({"GET", "HEAD"})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PASSING = frozenset({502, 503, 504})


class Transport:
    """One service and one token."""

    def __init__(
        self,
        url: str,
        token: str,
        patience_s: float,
        transport: httpx.BaseTransport | None = None,
        first_pause_s: float = 0.5,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ForedeckError(f"{url!r} is no address of a service: it must start with http:// or https://.")
        self.url = url.rstrip("/")
        self.patience_s, self._first_pause_s = patience_s, first_pause_s
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def read(self, model: type[Model], method: str, path: str, **given: Any) -> Model:
        answer = self.ask(method, path, **given)
        try:
            found = model.model_validate_json(answer.content)
        except ValidationError as error:
            raise ForedeckError(f"{self.url}{path} answers what this version does not understand: {error}") from error
        if isinstance(found, Versioned):
            found.keep_etag(answer.headers.get("ETag"))
        return found

    def ask(self, method: str, path: str, *, is_repeatable: bool = False, **given: Any) -> httpx.Response:
        """The answer to a request. One that did not reach the service, that it had no time for, or that may be repeated
        (reading, or `is_repeatable`: twice is as once) is tried again until the patience is over."""
        pauses = _Pauses(self.patience_s, self._first_pause_s)
        is_repeatable = is_repeatable or method in SAFE
        while True:
            try:
                answer = self._http.request(method, path, **_with_known_values(given))
                if answer.is_success:
                    return answer
                error = refusal(answer)
                may_repeat = error.status == 429 or (is_repeatable and _is_passing(error))
            except httpx.TransportError as cause:
                error = self.unreachable(cause)
                error.__cause__ = cause
                may_repeat = is_repeatable or isinstance(cause, _NEVER_SENT)
            if not may_repeat or not pauses.take(error.retry_after_s):
                raise error

    @contextmanager
    def stream(self, path: str, **given: Any) -> Iterator[httpx.Response]:
        """The answer while it comes. Raises ForedeckError when it breaks off."""
        try:
            with self._http.stream("GET", path, **_with_known_values(given)) as answer:
                if not answer.is_success:
                    answer.read()
                    raise refusal(answer)
                yield answer
        except httpx.TransportError as cause:
            raise self.unreachable(cause) from cause

    def unreachable(self, cause: object) -> ForedeckError:
        words = str(cause) or type(cause).__name__
        return ForedeckError(
            f"{self.url} does not answer ({words}). Is it running? `foredeck status` tells for this machine; "
            "FOREDECK_URL names another.",
            is_unreachable=True,
        )


class _Pauses:
    """Doubling pauses with chance in them, so that many clients of a service that restarts do not come back at once."""

    def __init__(self, patience_s: float, first_pause_s: float) -> None:
        self._deadline = time.monotonic() + patience_s
        self._next_s = first_pause_s

    def take(self, wanted_s: float | None) -> bool:
        """Sleeps for as long as the service wants, or for the next pause; False when that would be too long."""
        pause_s = self._next_s * (0.5 + random() / 2) if wanted_s is None else wanted_s  # noqa: S311  no secret
        if time.monotonic() + pause_s > self._deadline:
            return False
        self._next_s = min(2 * self._next_s, MAX_PAUSE_S)
        time.sleep(pause_s)
        return True


def refusal(answer: httpx.Response) -> ForedeckError:
    """What an answer that is no success says."""
    retry_after_s = _retry_after_s(answer.headers.get("Retry-After"))
    try:
        problem = Problem.model_validate_json(answer.content)
    except ValidationError:
        return ForedeckError(
            f"HTTP {answer.status_code} from {answer.url}: not a Foredeck service?",
            status=answer.status_code,
            retry_after_s=retry_after_s,
        )
    return ForedeckError(problem.detail, status=answer.status_code, problem=problem, retry_after_s=retry_after_s)


def _is_passing(error: ForedeckError) -> bool:
    """A gateway's or database's bad moment, or an equal request that is still being carried out."""
    return error.status in _PASSING or (error.status == 409 and error.retry_after_s is not None)


def _retry_after_s(value: str | None) -> float | None:
    """Seconds, or the time until a date (RFC 9110)."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _with_known_values(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters and headers that are None are left out."""
    return {
        key: {name: each for name, each in value.items() if each is not None} if key in {"params", "headers"} else value
        for key, value in given.items()
    }
