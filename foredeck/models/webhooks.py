"""Webhooks and what became of their deliveries."""

from datetime import datetime
from uuid import UUID

from foredeck.models.base import Answer, Page


class Webhook(Answer):
    """An address that is told of events."""

    id: UUID
    project: str
    name: str
    url: str
    events: list[str]
    is_enabled: bool
    disabled_reason: str | None = None


class CreatedWebhook(Webhook):
    """A webhook, and the secret that its messages are signed with, shown this once."""

    secret: str


class WebhookPage(Page[Webhook]):
    pass


class Delivery(Answer):
    """One message to one webhook."""

    id: UUID
    message_id: str
    type: str
    state: str
    created_at: datetime
    num_attempts: int


class DeliveryPage(Page[Delivery]):
    pass
