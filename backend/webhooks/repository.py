"""Webhooks and their deliveries in the database."""

from uuid import UUID

from sqlalchemy import literal, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.models import Webhook, WebhookDelivery


def get_project_id(session: Session, webhook_id: UUID) -> UUID | None:
    return session.scalar(select(Webhook.project_id).where(Webhook.id == webhook_id))


def insert_deliveries(session: Session, project_id: UUID, event_type: str, body: str) -> int:
    """One for each enabled webhook of the project that listens to such events; how many."""
    listening = select(Webhook.id, literal(event_type), literal(body)).where(
        Webhook.project_id == project_id, Webhook.is_enabled, Webhook.events.any_() == event_type
    )
    statement = insert(WebhookDelivery).from_select(["webhook_id", "type", "body"], listening)
    return len(session.scalars(statement.returning(WebhookDelivery.id)).all())
