"""Errors as RFC 9457 problem documents: what is wrong, where, with which value, and how to mend it."""

import logging
import math
import re
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from itertools import zip_longest
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from backend.db import CommitUnknownError
from backend.secret_values import LOOKS_SECRET, REDACTED
from backend.wording import in_words

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_VALUE_LENGTH = 200
_SECRET = re.compile(r"token|secret|password|passwd|credential|api_?key|authorization|cookie|code$", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"fdk_|Bearer |-----BEGIN")


class ProblemError(BaseModel):
    """One thing that is wrong with a request."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    pointer: str | None = None
    """JSON pointer into the request's body, as in /config/policy/hidden_size."""
    parameter: str | None = None
    """Name of the query parameter, path parameter or header, when it is not in the body."""
    detail: str
    """What is wrong, and the mend."""
    value: Any = None
    """The value that was refused; long ones are cut, secrets are left out."""


class Problem(BaseModel):
    """An error (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str = "about:blank"
    """Identifies the kind of problem."""
    title: str
    """The kind of problem in words."""
    status: int
    """The HTTP status."""
    detail: str
    """This occurrence in words."""
    instance: str
    """The path that was asked for."""
    request_id: str
    """Also in the X-Request-ID header and in the log."""
    errors: list[ProblemError] = []
    """Every single thing that is wrong, all at once."""


class ApiError(Exception):
    """Raised by services; becomes a problem document."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        errors: Sequence[ProblemError] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.errors, self.headers = status, detail, list(errors), headers


def not_found(what: str, name: object) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"There is no {what} {name}.")


def conflict(detail: str) -> ApiError:
    return ApiError(HTTPStatus.CONFLICT, detail)


def invalid(errors: Sequence[ProblemError]) -> ApiError:
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, _summary(errors), errors=errors)


def from_validation(error: ValidationError, body: object, prefix: str) -> list[ProblemError]:
    """The problems of a model that was validated by hand; `prefix` is the pointer of `body` in the request."""
    return [
        ProblemError(
            pointer=prefix + pointer(detail["loc"], body), detail=in_words(detail), value=_shown(detail, prefix)
        )
        for detail in error.errors(include_url=False)
    ]


def pointer(location: Iterable[str | int], body: object) -> str:
    """JSON pointer of a pydantic location, without the union tags that pydantic puts into it."""
    parts, here = [], body
    places = list(location)
    for part, following in zip_longest(places, places[1:]):
        if isinstance(here, dict) and part not in here and _is_tag(here, part, following):
            continue
        parts.append(str(part).replace("~", "~0").replace("/", "~1"))
        here = _descend(here, part)
    return "".join(f"/{part}" for part in parts)


def _is_tag(here: dict[Any, Any], part: str | int, following: str | int | None) -> bool:
    """Whether pydantic put it there: it is the object's kind, or the default of one that leaves its kind out."""
    return here["kind"] == part if "kind" in here else following in here


def _descend(value: object, part: str | int) -> object:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def _shown(detail: Any, where: str) -> Any:
    """The refused value as JSON can carry it; nothing for a missing one, a whole object or a secret."""
    value = detail["input"]
    path = where + "/".join(str(part) for part in detail["loc"])
    if detail["type"] == "missing" or isinstance(value, dict | list):
        return None
    if _SECRET.search(path) or (isinstance(value, str) and (_SECRET_VALUE.search(value) or LOOKS_SECRET.search(value))):
        return REDACTED
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value).encode("utf-8", "replace").decode()[:MAX_VALUE_LENGTH]


def _summary(errors: Sequence[ProblemError]) -> str:
    first = errors[0]
    where = first.pointer or first.parameter or "the request"
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    return f"{where}: {first.detail}{more}."


def _request_errors(error: RequestValidationError) -> list[ProblemError]:
    found: list[ProblemError] = []
    for detail in error.errors():
        source, *location = detail["loc"]
        if source == "body":
            is_syntax = detail["type"] == "json_invalid"
            where = {"pointer": "" if is_syntax else pointer(location, error.body)}
        else:
            where = {"parameter": str(location[0]) if location else str(source)}
        problem = ProblemError(**where, detail=in_words(detail), value=_shown(detail, ""))
        if problem not in found:  # a path parameter is read by the route and by its guard
            found.append(problem)
    return found


def problem_response(request: Request, error: ApiError) -> JSONResponse:
    problem = Problem(
        title=error.status.phrase,
        status=error.status,
        detail=error.detail,
        instance=request.url.path,
        request_id=getattr(request.state, "request_id", ""),
        errors=error.errors,
    )
    return JSONResponse(
        problem.model_dump(mode="json"), status_code=error.status, headers=error.headers, media_type=MEDIA_TYPE
    )


def _on_http_exception(request: Request, error: HTTPException) -> JSONResponse:
    status = HTTPStatus(error.status_code)
    details = {
        HTTPStatus.NOT_FOUND: f"There is nothing at {request.url.path}.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible at {request.url.path}.",
    }
    is_default = error.detail == status.phrase
    detail = details.get(status, str(error.detail)) if is_default else str(error.detail)
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {"Allow": ", ".join(sorted(_allowed(request)))}
    return problem_response(request, ApiError(status, detail, headers=headers))


def _allowed(request: Request) -> set[str]:
    """The methods of all routes of the path: the framework names those of the first. What is no route is a file."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = [route.methods or set() for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return set().union(*found) or {"GET", "HEAD"}


def _on_database_down(request: Request, error: Exception) -> JSONResponse:
    return _database_down(request, error, "Nothing was changed; try again.")


def _on_commit_lost(request: Request, error: CommitUnknownError) -> JSONResponse:
    if request.method in SAFE_METHODS:
        return _on_database_down(request, error)
    if request.headers.get("Idempotency-Key"):
        return _database_down(request, error, "Send it again with the same Idempotency-Key: it is carried out once.")
    return _database_down(request, error, "It is not known whether the change was made: look before you try again.")


def _database_down(request: Request, error: Exception, what_now: str) -> JSONResponse:
    logger.error("PostgreSQL does not answer", extra={"error": str(error.__cause__ or error)})
    detail = f"PostgreSQL does not answer. {what_now}"
    return problem_response(request, ApiError(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "2"}))


def _on_conflict(request: Request, error: IntegrityError) -> JSONResponse:
    logger.warning("PostgreSQL refused a change", extra={"error": str(error.orig)})
    detail = "The change conflicts with another one made at the same time. Load what is there now, and try again."
    return problem_response(request, conflict(detail))


def _on_bad_data(request: Request, error: DataError) -> JSONResponse:
    logger.warning("PostgreSQL refused a value", extra={"error": str(error.orig)})
    detail = "A value cannot be stored: a text holds a NUL character, or a number is out of range."
    return problem_response(request, ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, detail))


def _on_too_deep(request: Request, error: RecursionError) -> JSONResponse:
    if request.method in SAFE_METHODS:
        return on_unexpected(request, error)
    detail = "The body is nested too deeply: hundreds of objects or lists, one in the other."
    return problem_response(request, ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, detail))


def on_unexpected(request: Request, error: Exception) -> JSONResponse:
    """The last resort: says nothing about the inside, but gives the id to look for in the log."""
    logger.error("unexpected error", exc_info=error)
    detail = "Something unexpected went wrong in the service. Its log has more under this request id."
    return problem_response(request, ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, detail))


_HANDLERS: dict[type[Exception], Callable[[Request, Any], JSONResponse]] = {
    ApiError: problem_response,
    RequestValidationError: lambda request, error: problem_response(request, invalid(_request_errors(error))),
    HTTPException: _on_http_exception,
    OperationalError: _on_database_down,
    InterfaceError: _on_database_down,
    PoolTimeoutError: _on_database_down,
    CommitUnknownError: _on_commit_lost,
    IntegrityError: _on_conflict,
    DataError: _on_bad_data,
    RecursionError: _on_too_deep,
}


def answer_to(request: Request, error: Exception) -> JSONResponse:
    """The problem document of any error."""
    handlers = (_HANDLERS[kind] for kind in type(error).__mro__ if kind in _HANDLERS)
    return next(handlers, on_unexpected)(request, error)


def install(app: FastAPI) -> None:
    """Makes every error of the app a problem document."""
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
