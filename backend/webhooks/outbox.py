"""Events on their way out: promised in a transaction, delivered after it. For all domains, so it knows none of them."""

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from backend.db import after_commit
from backend.nudges import sender
from backend.webhooks import repository
from backend.webhooks.events import TASK, EventType, payload


def emit(session: Session, project_id: UUID, event_type: EventType, data: dict[str, Any]) -> None:
    """Promises an event to the project's webhooks that listen to it, should the transaction commit.

    Args:
        data: what JSON can hold; ids and times may be UUIDs and datetimes, and NaN becomes null. It goes to an address
            outside: no secrets.
    """
    if repository.insert_deliveries(session, project_id, event_type, payload(event_type, data)):
        nudge(session)


def nudge(session: Session) -> None:
    """Has a Celery worker deliver after the commit. Lost, it costs the time until the next look for what is due."""
    redis_url = session.info.get("redis_url")
    if redis_url:
        after_commit(session, TASK, lambda: sender(redis_url).send(TASK))
