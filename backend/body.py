"""What is taken of a request's body: how much, of which kind, and how long it may take to come."""

import asyncio
from http import HTTPStatus

from fastapi import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

_IS_JSON = ("application/json", "application/merge-patch+json")


def check_announced(request: Request, limit: int) -> None:
    """Refuses unread what the headers say too much of: 413 for its length, 415 for its kind."""
    length = request.headers.get("Content-Length", "")
    announced = int(length) if length.isascii() and length.isdigit() else 0
    _check_length(announced, limit)
    if announced or "Transfer-Encoding" in request.headers:
        _check_kind(request)


def _check_kind(request: Request) -> None:
    """Compressed bodies are refused, too: what little is sent could be a lot."""
    kind = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in _IS_JSON:
        detail = "Send the body as JSON, with the header Content-Type: application/json."
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without a Content-Encoding.")


def limited(receive: Receive, limit: int, timeout_s: float) -> Receive:
    """What announces no length, or a wrong one, is counted as it comes; what comes too slowly is waited for no longer
    than `timeout_s` in all."""
    num_bytes, deadline, is_complete = 0, 0.0, False

    async def counted() -> Message:
        nonlocal num_bytes, deadline, is_complete
        if is_complete:  # from here on it is the client's leaving that is waited for, as by streams
            return await receive()
        deadline = deadline or asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            detail = f"The body did not come within {timeout_s:g} s. Nothing was changed."
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, detail) from None
        num_bytes += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        _check_length(num_bytes, limit)
        return message

    return counted


def _check_length(num_bytes: int, limit: int) -> None:
    if num_bytes > limit:
        raise HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body exceeds {limit // 2**20} MiB: send less at once."
        )
