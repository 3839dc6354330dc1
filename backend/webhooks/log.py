"""The delivery log, and what is sent by hand."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend.auth import audit
from backend.auth.identity import Principal
from backend.cursor import cut, decode
from backend.errors import conflict, not_found
from backend.models import Webhook, WebhookDelivery
from backend.webhooks import repository, service, view
from backend.webhooks.events import PING, payload
from backend.webhooks.outbox import nudge
from backend.webhooks.schemas import DeliveryDetail, DeliveryPage, DeliveryRead, State


def list_page(session: Session, webhook_id: UUID, limit: int, cursor: str | None, state: State | None) -> DeliveryPage:
    after = decode(cursor, datetime, UUID) if cursor else None
    rows = repository.list_deliveries(session, webhook_id, limit + 1, after, state)
    kept, next_cursor = cut(rows, limit, lambda row: (row.created_at, row.id))
    return DeliveryPage(items=view.deliveries(session, kept), next_cursor=next_cursor)


def read(session: Session, webhook_id: UUID, delivery_id: UUID) -> DeliveryDetail:
    return view.delivery(session, _get(session, webhook_id, delivery_id))


def ping(session: Session, webhook_id: UUID, principal: Principal) -> DeliveryRead:
    """Sends an event that says nothing, whatever the webhook listens to."""
    webhook = _open(session, webhook_id)
    body = payload(PING, {"webhook_id": webhook.id, "name": webhook.name})
    row = repository.insert_delivery(session, webhook.id, PING, body)
    audit.record(session, principal, "webhook.ping", webhook.id, webhook.project_id, name=webhook.name)
    webhook.paused_until = None
    nudge(session)
    return view.deliveries(session, [row])[0]


def redeliver(session: Session, webhook_id: UUID, delivery_id: UUID, principal: Principal) -> DeliveryRead:
    """Sends it again now, with the same id and body, and with as many tries as the first time."""
    webhook = _open(session, webhook_id)
    row = _get(session, webhook_id, delivery_id)
    row.state, row.due_at, row.ended_at, row.num_tries = "pending", func.now(), None, 0
    detail = {"name": webhook.name, "delivery": str(row.id)}
    audit.record(session, principal, "webhook.redeliver", webhook.id, webhook.project_id, **detail)
    webhook.paused_until = None
    session.flush()
    session.refresh(row)
    nudge(session)
    return view.deliveries(session, [row])[0]


def _open(session: Session, webhook_id: UUID) -> Webhook:
    webhook = service.get_locked(session, webhook_id)
    if not webhook.is_enabled:
        raise conflict(f"Webhook {webhook.name} is disabled: enable it first.")
    return webhook


def _get(session: Session, webhook_id: UUID, delivery_id: UUID) -> WebhookDelivery:
    row = repository.get_delivery(session, webhook_id, delivery_id)
    if row is None:
        raise not_found("delivery", delivery_id)
    return row
