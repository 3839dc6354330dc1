"""How many live streams one caller has open. Each holds memory of its process, so each process counts."""

from collections import Counter
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from backend.auth.guard import authenticate
from backend.auth.identity import Principal
from backend.caller import caller_of
from backend.deps import SettingsDep
from backend.errors import ApiError


async def _slot(
    request: Request, settings: SettingsDep, _: Annotated[Principal, Depends(authenticate)]
) -> AsyncIterator[None]:
    """Held until the stream has ended. Raises ApiError (429) when there are too many."""
    counts, caller = open_streams(request.app), caller_of(request)
    if counts[caller] >= settings.max_streams:
        detail = f"This token or session has {settings.max_streams} live streams open: close some."
        raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, detail, headers={"Retry-After": "5"})
    counts[caller] += 1
    try:
        yield
    finally:
        counts[caller] -= 1
        if not counts[caller]:
            del counts[caller]


def open_streams(app: FastAPI) -> Counter[str]:
    """By caller."""
    if not hasattr(app.state, "open_streams"):
        app.state.open_streams = Counter()
    counts: Counter[str] = app.state.open_streams
    return counts


StreamSlot = Annotated[None, Depends(_slot)]
"""For routes that stream without an end, after their guard."""
