"""What the audit log shows."""

from datetime import datetime
from typing import Any

from backend.auth.schemas import Schema
from backend.cursor import Page


class AuditEntryRead(Schema):
    id: int
    time: datetime
    actor: str
    """`user:grace`, `token:grace/ci`, `run:<id>`, or who failed to log in: `stranger`."""
    action: str
    """What was done, as in run.launch."""
    target: str
    """To what: an id or a name."""
    detail: dict[str, Any]
    project: str | None
    """Name of the project that it happened in; null for what belongs to none, or to one that is gone."""
    address: str | None
    """Where the request came from; null for the service itself."""
    request_id: str | None
    """Also in the service's log."""


class AuditPage(Page[AuditEntryRead]):
    """Entries of the audit log, newest first."""
