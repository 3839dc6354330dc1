"""Deliveries that are due, and the leases under which they are made.

The webhook is leased, not the delivery: a receiver has one request at a time, those first that are due longest. So a
slow one takes one place, and all others are served from the rest.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.orm import Session

from backend.models import Webhook, WebhookAttempt, WebhookDelivery

LEASE_S = 30.0
"""Longer than any request takes. Whoever dies with a lease keeps the webhook waiting for so long."""
_UNSYNCHRONIZED = {"synchronize_session": False}


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery to be made, and its webhook as it is now."""

    token: UUID
    webhook_id: UUID
    delivery_id: UUID
    url: str
    body: str
    secret: str
    previous_secret: str | None
    """Null once its time is over."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt."""

    started_at: datetime
    duration_ms: int
    status: int | None
    answer: str
    error: str | None
    """Null where the receiver has taken it."""
    retry_after_s: float = 0
    """How long the receiver asks to be left alone."""
    is_gone: bool = False
    """The receiver wants no more of them, ever."""


def claim(session: Session) -> Lease | None:
    """The delivery that is due longest, of a webhook that nobody delivers to."""
    now = func.now()
    is_free = or_(Webhook.lock_expires_at.is_(None), Webhook.lock_expires_at < now)
    is_open = or_(Webhook.paused_until.is_(None), Webhook.paused_until <= now)
    is_due = (WebhookDelivery.webhook_id == Webhook.id) & (WebhookDelivery.due_at <= now)
    first_due_at = select(func.min(WebhookDelivery.due_at)).where(is_due).scalar_subquery()
    waiting = (
        select(Webhook)
        .where(Webhook.is_enabled, is_free, is_open, exists().where(is_due))
        .order_by(first_due_at)
        .limit(1)
        .with_for_update(skip_locked=True, key_share=True)
    )
    webhook = session.scalar(waiting)
    delivery = _first_due(session, webhook.id) if webhook else None
    if webhook is None or delivery is None:  # done by somebody who let go of the webhook at this moment
        return None
    token = uuid4()
    values = {"lock_token": token, "lock_expires_at": now + timedelta(seconds=LEASE_S)}
    _update(session, webhook.id, **values)
    is_both = webhook.previous_secret_expires_at is not None and webhook.previous_secret_expires_at > _now(session)
    previous = webhook.previous_secret if is_both else None
    return Lease(token, webhook.id, delivery.id, webhook.url, delivery.body, webhook.secret, previous)


def _first_due(session: Session, webhook_id: UUID) -> WebhookDelivery | None:
    statement = (
        select(WebhookDelivery)
        .where(WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.due_at <= func.now())
        .order_by(WebhookDelivery.due_at, WebhookDelivery.created_at, WebhookDelivery.id)
        .limit(1)
    )
    return session.scalar(statement)


def _now(session: Session) -> datetime:
    return session.scalars(select(func.now())).one()


def _update(session: Session, webhook_id: UUID, **values: object) -> None:
    statement = update(Webhook).where(Webhook.id == webhook_id).values(**values)
    session.execute(statement, execution_options=_UNSYNCHRONIZED)


def held(session: Session, lease: Lease) -> tuple[Webhook, WebhookDelivery] | None:
    """Locked, unless the lease has passed to somebody else or what it is about is gone."""
    mine = (Webhook.id == lease.webhook_id) & (Webhook.lock_token == lease.token)
    statement = select(Webhook).where(mine).with_for_update(key_share=True)
    webhook = session.scalar(statement)
    delivery = session.get(WebhookDelivery, lease.delivery_id) if webhook else None
    return (webhook, delivery) if webhook and delivery else None


def release(webhook: Webhook) -> None:
    webhook.lock_token = webhook.lock_expires_at = None


def add_attempt(session: Session, delivery: WebhookDelivery, outcome: Outcome) -> None:
    session.add(
        WebhookAttempt(
            delivery_id=delivery.id,
            started_at=outcome.started_at,
            duration_ms=outcome.duration_ms,
            status=outcome.status,
            answer=outcome.answer,
            error=outcome.error,
        )
    )


def give_up_pending(session: Session, webhook_id: UUID) -> None:
    """Nothing more is sent of what waits for the webhook."""
    pending = (WebhookDelivery.webhook_id == webhook_id) & (WebhookDelivery.state == "pending")
    values = {"state": "failed", "due_at": None, "ended_at": func.now()}
    session.execute(update(WebhookDelivery).where(pending).values(**values), execution_options=_UNSYNCHRONIZED)
