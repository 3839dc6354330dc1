"""What webhooks can be told of, and how it is written."""

import json
import math
from datetime import UTC, datetime
from typing import Any, Literal, get_args

EventType = Literal[
    "run.queued",
    "run.started",
    "run.resumed",
    "run.lost",
    "run.succeeded",
    "run.failed",
    "run.stopped",
    "alarm.raised",
    "alarm.cleared",
    "gate.passed",
    "gate.failed",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
TASK = "deliver_webhooks"
"""Celery's name for having them delivered."""
PING = "ping"
"""Sent by hand to one webhook, whatever it listens to."""


def payload(event_type: str, data: dict[str, Any]) -> str:
    """The body of a delivery: `{type, timestamp, data}`; the timestamp is when it happened. Its bytes are signed."""
    body = {"type": event_type, "timestamp": _plain(datetime.now(UTC)), "data": _plain(data)}
    # ASCII and without NaN: receivers parse it with whatever they have.
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """As JSON has it. Nothing fails: an event must not undo what it tells of."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)
