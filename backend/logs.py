"""Log records as one JSON object a line, each with the ids of what it is about."""

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from backend.secret_values import redacted
from backend.settings import Settings

_context: ContextVar[dict[str, Any]] = ContextVar("log_context", default={})  # noqa: B039 (never mutated)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


_TALKATIVE = (
    "httpx",
    "httpcore",
    "uvicorn.access",
    "celery.worker.strategy",
    "celery.app.trace",
    "celery.beat",
    "alembic.runtime.plugins",
)
"""They repeat every few seconds, or on every request, what our own records say better."""


@contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Adds the fields to every record of the block."""
    token = _context.set(_context.get() | fields)
    try:
        yield
    finally:
        _context.reset(token)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    # Ray marks every record of a process that has loaded it with private fields of its own.
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD and name[0] != "_"}
    return _context.get() | extra


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return redacted(json.dumps(line, default=str))


class TextFormatter(logging.Formatter):
    """What came from outside, as a path may, begins no line of its own and moves no cursor."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return _CONTROL.sub(_escaped, super().formatMessage(record) + fields)


def _escaped(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()


def configure(settings: Settings) -> None:
    """Sends all records of the process to standard error in the chosen form."""
    is_json = settings.log_format == "json"
    formatter = JsonFormatter() if is_json else TextFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [kept for kept in root.handlers if not getattr(kept, "is_foredeck", False)] + [handler]
    handler.is_foredeck = True  # type: ignore[attr-defined]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
