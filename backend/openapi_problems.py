"""Which problems each operation may answer with, for the OpenAPI document."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from backend.errors import SAFE_METHODS

_WHY = {
    HTTPStatus.BAD_REQUEST: "The body is no JSON.",
    HTTPStatus.UNAUTHORIZED: "Nobody is logged in, or the token is not valid.",
    HTTPStatus.FORBIDDEN: "The caller may not do this.",
    HTTPStatus.NOT_FOUND: "There is no such thing, or the caller may not see it.",
    HTTPStatus.REQUEST_TIMEOUT: "The body did not come in time.",
    HTTPStatus.CONFLICT: "What is there now stands against it.",
    HTTPStatus.PRECONDITION_FAILED: "It was changed since the ETag that was given.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not sent as plain JSON.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Something in it is wrong: each with its place, its value and the mend.",
    HTTPStatus.PRECONDITION_REQUIRED: "The ETag that the change is based on is missing.",
    HTTPStatus.TOO_MANY_REQUESTS: "More than the caller may at once; Retry-After says when to come again.",
    HTTPStatus.SERVICE_UNAVAILABLE: "What it needs does not answer now.",
}
_MAY_MISS = frozenset({"session_get", "telemetry_stream"})


def components(problem: dict[str, Any]) -> dict[str, Any]:
    """The responses that operations refer to; `problem` is the content of each."""
    return {_name(status): {"description": why, "content": problem} for status, why in _WHY.items()}


def describe(method: str, path: str, operation: dict[str, Any]) -> None:
    """Adds to the operation's responses those that it may answer with, unless it has described them itself."""
    for status in _statuses(method, path, operation):
        operation["responses"].setdefault(str(int(status)), {"$ref": f"#/components/responses/{_name(status)}"})


def _statuses(method: str, path: str, operation: dict[str, Any]) -> Iterator[HTTPStatus]:
    parameters = operation.get("parameters", [])
    if "security" in operation:
        yield from (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)
    if "{" in path or operation["operationId"] in _MAY_MISS:
        yield HTTPStatus.NOT_FOUND
    if method.upper() not in SAFE_METHODS:
        yield from (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT)
    if "requestBody" in operation:
        yield from (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        yield from (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.UNPROCESSABLE_ENTITY)
    if any(parameter["name"] == "If-Match" for parameter in parameters):
        yield from (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)
    if parameters:
        yield HTTPStatus.UNPROCESSABLE_ENTITY
    if operation["operationId"] != "health":
        yield from (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def _name(status: HTTPStatus) -> str:
    return "".join(word.capitalize() for word in status.phrase.split())
