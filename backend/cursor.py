"""Pages of lists that grow, and the opaque positions between them: the values that a list is ordered by.

Together they must be unique. `backend.runs` shows the use: `decode` reads the caller's cursor, the repository asks for
the rows after it and for one more than the page holds, and `cut` makes the page and the next cursor of them.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, ConfigDict

from backend.errors import ProblemError, invalid

Item = TypeVar("Item")
Row = TypeVar("Row")
Key = tuple[Any, ...]
MAX_INT = 2**63

Limit = Annotated[int, Query(ge=1, le=200, description="Items of one page at most")]
Cursor = Annotated[str | None, Query(max_length=500, description="next_cursor of the page before")]


class Page(BaseModel, Generic[Item]):
    """A part of a list. Give it a name by a class of its own: `class RunPage(Page[RunSummary])`."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    items: list[Item]
    next_cursor: str | None
    """Pass it as `cursor` for the next page; null on the last one."""


def cut(rows: Sequence[Row], limit: int, key: Callable[[Row], Key]) -> tuple[Sequence[Row], str | None]:
    """(the rows of the page, the cursor of the next), of rows of which one more than `limit` was asked for."""
    page = rows[:limit]
    return page, encode(*key(page[-1])) if len(rows) > limit else None


def encode(*key: datetime | UUID | int | str) -> str:
    values = [value.isoformat() if isinstance(value, datetime) else value for value in key]
    text = json.dumps([value.hex if isinstance(value, UUID) else value for value in values])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, *kinds: type[datetime | UUID | int | str]) -> Key:
    """The values, of these kinds. Raises ApiError (422) when it is not a cursor of such a list."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(values, list):
            raise TypeError("no list")
        return tuple(_READ[kind](value) for kind, value in zip(kinds, values, strict=True))
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        detail = "is not a cursor of this list: pass the next_cursor of the page before, unchanged"
        raise invalid([ProblemError(parameter="cursor", detail=detail, value=cursor[:200])]) from error


def _time(value: Any) -> datetime:
    time = datetime.fromisoformat(value)
    if time.tzinfo is None:
        raise ValueError("no time zone")
    return time


def _int(value: Any) -> int:
    if type(value) is not int or not -MAX_INT <= value < MAX_INT:
        raise ValueError("no number that PostgreSQL holds")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError("no text that PostgreSQL holds")
    value.encode()  # raises for half a character
    return value


_READ: dict[Any, Callable[[Any], Any]] = {
    datetime: _time,
    UUID: lambda value: UUID(hex=value),
    int: _int,
    str: _text,
}
