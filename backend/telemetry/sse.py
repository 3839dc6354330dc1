"""Server-sent events on the wire."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Send

KEEP_ALIVE = b": keep-alive\n\n"
RETRY = b"retry: 1000\n\n"


def encode(event: str, data: Any, event_id: int | None = None) -> bytes:
    """One event with JSON data, which has no line breaks in it."""
    head = f"event: {event}\n" if event_id is None else f"id: {event_id}\nevent: {event}\n"
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class EventStream(StreamingResponse):
    """Sends what a generator yields, and closes it at once when the client goes away."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # nginx and others must neither keep nor collect the events.
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)
