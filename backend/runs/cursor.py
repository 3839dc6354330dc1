"""Opaque positions in a list that is ordered by (created_at, id)."""

import base64
import binascii
import json
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from backend.errors import ProblemError, invalid


class Position(NamedTuple):
    """The last row of a page."""

    created_at: datetime
    id: UUID


def encode(position: Position) -> str:
    text = json.dumps([position.created_at.isoformat(), position.id.hex])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str) -> Position:
    """Raises ApiError (422) when it is not a cursor."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        time, id_ = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        position = Position(datetime.fromisoformat(time), UUID(hex=id_))
        if position.created_at.tzinfo is None:
            raise ValueError("no time zone")
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        detail = "is not a cursor: pass the next_cursor of the page before, unchanged"
        raise invalid([ProblemError(parameter="cursor", detail=detail, value=cursor[:200])]) from error
    return position
