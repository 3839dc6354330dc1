"""Lists that come page by page."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from foredeck.models.base import Page
from foredeck.transport import Transport

Item = TypeVar("Item")
LIMIT = 200


def every(
    transport: Transport, page: type[Page[Item]], path: str, params: Mapping[str, Any] | None = None
) -> Iterator[Item]:
    """All items, fetched as they are asked for."""
    cursor: str | None = None
    while True:
        found = transport.read(page, "GET", path, params={"limit": LIMIT, "cursor": cursor, **(params or {})})
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return
