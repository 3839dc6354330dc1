"""Entity tags: of what a client may change, and of all that it sees.

A run changes with every heartbeat, so that a tag of its whole representation could never be sent back in time; one of
what can be edited alone would have caches believe that nothing happens. So a tag has two halves, `"edit.content"`:
If-Match compares the first, If-None-Match both. To clients it is one opaque text.
"""

import hashlib
import json
from http import HTTPStatus
from typing import Annotated

from fastapi import Header
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from starlette.requests import Request
from starlette.responses import Response

from backend.errors import SAFE_METHODS, ApiError

_LENGTH = 16
"""Of each half in hexadecimal digits: 64 bits, against accidents; nobody gains by a collision."""

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description="ETag of what was loaded: the change is refused (412) if somebody has changed it since. Without "
        "it, the last change wins.",
    ),
]


def answer(request: Request, read: BaseModel, update: type[BaseModel]) -> Response:
    """What was read, with its tag; 304 without it for who has it already. `update` is the body that edits it."""
    body = read.model_dump_json().encode()
    tag = f'"{_edit_half(read, update)}.{_hash(body)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.method in SAFE_METHODS and _has(request, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def require(if_match: str | None, now: object, update: type[BaseModel]) -> None:
    """Raises ApiError (412) when what was loaded has been edited since. `now` has what can be edited as attributes, and
    its row is locked."""
    if if_match is None or if_match.strip() == "*":
        return
    if _edit_half(now, update) not in {tag.partition(".")[0] for tag in _listed(if_match)}:
        detail = "Somebody has changed this since you loaded it. Load it anew, and change what is there now."
        raise ApiError(HTTPStatus.PRECONDITION_FAILED, detail)


def _edit_half(read: object, update: type[BaseModel]) -> str:
    editable = {name: getattr(read, name) for name in update.model_fields if hasattr(read, name)}
    return _hash(json.dumps(to_jsonable_python(editable), sort_keys=True).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_LENGTH]


def _has(request: Request, tag: str) -> bool:
    given = ",".join(request.headers.getlist("If-None-Match"))
    return given.strip() == "*" or tag.strip('"') in _listed(given)


def _listed(header: str) -> list[str]:
    """The tags, without quotes. A proxy that compresses marks them as weak, which changes nothing of what they mean
    here."""
    return [tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")]
