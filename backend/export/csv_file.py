"""CSV as it is sent, harmless to spreadsheets."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

MEDIA_TYPE = "text/csv; charset=utf-8; header=present"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What begins a formula in one spreadsheet or another, the wide forms of Asian keyboards too."""


def write_csv(header: Sequence[str], pages: Iterable[Iterable[Sequence[Any]]]) -> Iterator[bytes]:
    """The file in parts: a line of names, then a line for each row; every text quoted, numbers never."""
    yield _lines([header])
    for page in pages:
        yield _lines(page)


def _lines(rows: Iterable[Sequence[Any]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC).writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue().encode()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe before it, which spreadsheets do not show. Numbers
    stay as they are, negative ones too."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
