"""Webhooks and their deliveries in the database."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import Project, Webhook, WebhookAttempt, WebhookDelivery


def get_project_id(session: Session, webhook_id: UUID) -> UUID | None:
    return session.scalar(select(Webhook.project_id).where(Webhook.id == webhook_id))


def get_project_name(session: Session, project_id: UUID) -> str:
    return session.scalars(select(Project.name).where(Project.id == project_id)).one()


def insert_deliveries(session: Session, project_id: UUID, event_type: str, body: str) -> int:
    """One for each enabled webhook of the project that listens to such events; how many."""
    listening = select(Webhook.id, literal(event_type), literal(body)).where(
        Webhook.project_id == project_id, Webhook.is_enabled, Webhook.events.any_() == event_type
    )
    statement = insert(WebhookDelivery).from_select(["webhook_id", "type", "body"], listening)
    return len(session.scalars(statement.returning(WebhookDelivery.id)).all())


def insert_delivery(session: Session, webhook_id: UUID, event_type: str, body: str) -> WebhookDelivery:
    statement = insert(WebhookDelivery).values(webhook_id=webhook_id, type=event_type, body=body)
    return session.scalars(statement.returning(WebhookDelivery)).one()


def insert_webhook(session: Session, webhook: Webhook) -> None:
    session.add(webhook)
    session.flush()
    session.refresh(webhook)


def get(session: Session, webhook_id: UUID) -> Webhook | None:
    return session.get(Webhook, webhook_id)


def get_locked(session: Session, webhook_id: UUID) -> Webhook | None:
    """Nobody notes a delivery meanwhile."""
    statement = select(Webhook).where(Webhook.id == webhook_id).with_for_update(key_share=True)
    return session.scalar(statement, execution_options={"populate_existing": True})


def count_of_project(session: Session, project_id: UUID) -> int:
    return session.scalars(select(func.count()).where(Webhook.project_id == project_id)).one()


def count_pending(session: Session, webhook_ids: Collection[UUID]) -> dict[UUID, int]:
    statement = (
        select(WebhookDelivery.webhook_id, func.count())
        .where(WebhookDelivery.webhook_id.in_(webhook_ids), WebhookDelivery.due_at.is_not(None))
        .group_by(WebhookDelivery.webhook_id)
    )
    return {row[0]: row[1] for row in session.execute(statement)}


def list_page(
    session: Session, limit: int, after: Key | None, project_ids: Collection[UUID] | None, project: str | None
) -> Sequence[tuple[Webhook, str]]:
    """With the names of their projects, newest first; of the given projects, or of all."""
    statement = (
        select(Webhook, Project.name)
        .join(Project, Project.id == Webhook.project_id)
        .order_by(Webhook.created_at.desc(), Webhook.id.desc())
        .limit(limit)
    )
    if project_ids is not None:
        statement = statement.where(Webhook.project_id.in_(project_ids))
    if project is not None:
        statement = statement.where(Project.name == project)
    if after:
        statement = statement.where(tuple_(Webhook.created_at, Webhook.id) < tuple_(*after))
    return [(webhook, name) for webhook, name in session.execute(statement)]


def get_delivery(session: Session, webhook_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    is_it = (WebhookDelivery.id == delivery_id) & (WebhookDelivery.webhook_id == webhook_id)
    return session.scalar(select(WebhookDelivery).where(is_it))


def list_deliveries(
    session: Session, webhook_id: UUID, limit: int, after: Key | None, state: str | None
) -> Sequence[WebhookDelivery]:
    """Newest first."""
    statement = (
        select(WebhookDelivery)
        .where(WebhookDelivery.webhook_id == webhook_id)
        .order_by(WebhookDelivery.created_at.desc(), WebhookDelivery.id.desc())
        .limit(limit)
    )
    if state is not None:
        statement = statement.where(WebhookDelivery.state == state)
    if after:
        statement = statement.where(tuple_(WebhookDelivery.created_at, WebhookDelivery.id) < tuple_(*after))
    return session.scalars(statement).all()


def list_attempts(session: Session, delivery_ids: Collection[UUID]) -> dict[UUID, list[WebhookAttempt]]:
    """Oldest first."""
    found: dict[UUID, list[WebhookAttempt]] = {delivery_id: [] for delivery_id in delivery_ids}
    statement = select(WebhookAttempt).where(WebhookAttempt.delivery_id.in_(delivery_ids)).order_by(WebhookAttempt.id)
    for attempt in session.scalars(statement):
        found[attempt.delivery_id].append(attempt)
    return found


def delete_old_deliveries(session: Session, kept: timedelta) -> None:
    """Of which nothing is left to be done."""
    is_old = (WebhookDelivery.created_at < func.now() - kept) & WebhookDelivery.due_at.is_(None)
    session.execute(delete(WebhookDelivery).where(is_old), execution_options={"synchronize_session": False})
