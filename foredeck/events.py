"""Server-sent events: what advances, as it does."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx

from foredeck.errors import ForedeckError
from foredeck.transport import TIMEOUT_S, Transport

SILENCE_S = 60.0
"""A stream sends a comment every 15 s; one that is silent for longer is dead."""
PAUSE_S = 1.0
MAX_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream."""

    kind: str
    """`run`, `series`, `samples`, `alarm`, `log`; `open` once the stream is live; `resync` when history is gone."""
    data: str
    """A JSON document."""
    id: int | None
    """Where a stream goes on when it was interrupted."""


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a stream's lines; comments and keep-alives are left out."""
    kind, event_id = "message", None
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Event(kind, "\n".join(data), event_id)
            kind, event_id, data = "message", None, []
        elif name == "event":
            kind = value
        elif name == "id":
            event_id = int(value) if value.isdecimal() else None
        elif name == "data":
            data.append(value)


def followed(
    transport: Transport, path: str, params: dict[str, str], after: int | None, patience_s: float | None = None
) -> Iterator[Event]:
    """The events of a stream for as long as the service lets it go on; after an interruption from where it was.

    Raises:
        ForedeckError: the service refuses, or is silent for longer than the patience, by default that of the client.
    """
    silent_since, pause_s = time.monotonic(), PAUSE_S
    patience_s = transport.patience_s if patience_s is None else patience_s
    while True:
        try:
            for event in once(transport, path, params, after):
                after = after if event.id is None else event.id
                silent_since, pause_s = time.monotonic(), PAUSE_S
                yield event
        except ForedeckError as error:
            if not error.is_infrastructure or time.monotonic() - silent_since > patience_s:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)


def once(transport: Transport, path: str, params: dict[str, str], after: int | None) -> Iterator[Event]:
    """The events of one connection, until it ends."""
    headers = {"Last-Event-ID": None if after is None else str(after), "Accept": "text/event-stream"}
    timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_S)
    with transport.stream(path, params=params, headers=headers, timeout=timeout) as answer:
        yield from parsed(answer.iter_lines())


def until(events: Iterator[Event], is_last: Callable[[Event], bool]) -> Iterator[Event]:
    """Events up to and including the last."""
    for event in events:
        yield event
        if is_last(event):
            return
