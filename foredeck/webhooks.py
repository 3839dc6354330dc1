"""Webhooks: telling others of events."""

from collections.abc import Iterator, Sequence
from uuid import UUID, uuid4

from foredeck.models import CreatedWebhook, Delivery, DeliveryPage, Webhook, WebhookPage
from foredeck.paging import every
from foredeck.transport import Transport


class Webhooks:
    """`Foredeck.webhooks`; for those who administer the project."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        url: str,
        events: Sequence[str],
        *,
        project: str | None = None,
        idempotency_key: str | None = None,
    ) -> CreatedWebhook:
        """A new webhook with the secret that it signs with, shown this once."""
        body = {"name": name, "url": url, "events": [*events], "project": project}
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return self._transport.read(CreatedWebhook, "POST", "/webhooks", json=body, headers=headers, is_repeatable=True)

    def get(self, webhook_id: UUID) -> Webhook:
        return self._transport.read(Webhook, "GET", f"/webhooks/{webhook_id}")

    def delete(self, webhook_id: UUID) -> None:
        self._transport.ask("DELETE", f"/webhooks/{webhook_id}")

    def list(self) -> Iterator[Webhook]:
        """All that you administer."""
        return every(self._transport, WebhookPage, "/webhooks")

    def deliveries(self, webhook_id: UUID) -> Iterator[Delivery]:
        """What was sent, newest first."""
        return every(self._transport, DeliveryPage, f"/webhooks/{webhook_id}/deliveries")
