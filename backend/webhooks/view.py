"""Webhooks and deliveries as the API shows them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from backend.models import Webhook, WebhookAttempt, WebhookDelivery
from backend.webhooks import repository
from backend.webhooks.schemas import DeliveryAttemptRead, DeliveryDetail, DeliveryRead, WebhookCreated, WebhookRead
from backend.webhooks.signing import message_id


def detail(session: Session, webhook: Webhook) -> WebhookRead:
    session.flush()
    session.refresh(webhook)
    return summaries(session, [(webhook, repository.get_project_name(session, webhook.project_id))])[0]


def created(session: Session, webhook: Webhook, secret: str) -> WebhookCreated:
    return WebhookCreated(**detail(session, webhook).model_dump(), secret=secret)


def summaries(session: Session, rows: Sequence[tuple[Webhook, str]]) -> list[WebhookRead]:
    """Of webhooks with their projects' names."""
    num_pending = repository.count_pending(session, [webhook.id for webhook, _ in rows])
    return [
        WebhookRead(
            id=webhook.id,
            project=project,
            name=webhook.name,
            url=webhook.url,
            events=webhook.events,
            is_enabled=webhook.is_enabled,
            disabled_reason=webhook.disabled_reason,
            failing_since=webhook.failing_since,
            num_pending=num_pending.get(webhook.id, 0),
            previous_secret_expires_at=_ahead(webhook.previous_secret_expires_at),
            created_at=webhook.created_at,
            updated_at=webhook.updated_at,
        )
        for webhook, project in rows
    ]


def _ahead(time: datetime | None) -> datetime | None:
    return time if time and time > datetime.now(UTC) else None


def deliveries(session: Session, rows: Sequence[WebhookDelivery]) -> list[DeliveryRead]:
    attempts = repository.list_attempts(session, [row.id for row in rows])
    return [DeliveryRead(**_common(row, attempts[row.id])) for row in rows]


def delivery(session: Session, row: WebhookDelivery) -> DeliveryDetail:
    attempts = repository.list_attempts(session, [row.id])[row.id]
    told = [DeliveryAttemptRead.model_validate(attempt) for attempt in attempts]
    return DeliveryDetail(**_common(row, attempts), body=row.body, attempts=told)


def _common(row: WebhookDelivery, attempts: Sequence[WebhookAttempt]) -> dict[str, object]:
    return {
        "id": row.id,
        "message_id": message_id(row.id),
        "type": row.type,
        "state": row.state,
        "created_at": row.created_at,
        "ended_at": row.ended_at,
        "next_attempt_at": row.due_at,
        "num_attempts": len(attempts),
        "last_attempt": DeliveryAttemptRead.model_validate(attempts[-1]) if attempts else None,
    }
