"""What the webhook routes take and give."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from backend.auth.schemas import Name, Request, Schema
from backend.cursor import Page
from backend.runs.schemas import ProjectName
from backend.webhooks.events import EventType
from backend.webhooks.receiver import MAX_LENGTH, parse

DAY_S = 86_400
State = Literal["pending", "succeeded", "failed"]


def _parsed(url: str) -> str:
    parse(url)
    return url


def _once(events: list[EventType]) -> list[EventType]:
    return sorted(set(events))


Url = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(_parsed)]
Events = Annotated[list[EventType], Field(min_length=1, max_length=50), AfterValidator(_once)]


class WebhookCreate(Request):
    """An address to be told of a project's events."""

    name: Name = Field(examples=["deploy bot"])
    url: Url = Field(examples=["https://ci.example.org/foredeck"])
    """https, at a public address; others as FOREDECK_WEBHOOK_ALLOWED_NETWORKS has it."""
    events: Events = Field(examples=[["run.succeeded", "run.failed"]])
    """What to tell it of."""
    project: ProjectName | None = None
    """Name of the project whose events these are; without one `default`, or the only one that you administer."""


class WebhookUpdate(Request):
    """What is left out stays."""

    name: Name | None = None
    url: Url | None = None
    events: Events | None = None
    is_enabled: bool | None = None
    """Disabled, it is told nothing, and what waits for it is given up."""


class SecretRotate(Request):
    """A new secret takes the place of the present one."""

    overlap_s: int = Field(DAY_S, ge=0, le=7 * DAY_S)
    """For so long deliveries are signed with both, so that no receiver has to change at the same moment."""


class WebhookRead(Schema):
    """A webhook; its secret is shown when it is made and when it is rotated, and never again."""

    id: UUID
    project: str
    name: str
    url: str
    events: list[str]
    is_enabled: bool
    disabled_reason: str | None
    """Why the service itself has disabled it."""
    failing_since: datetime | None
    """The first failure after the last success; null while all is well."""
    num_pending: int
    """Deliveries that wait for their turn or their next try."""
    previous_secret_expires_at: datetime | None
    """Until then deliveries are signed with the secret before, too."""
    created_at: datetime
    updated_at: datetime


class WebhookCreated(WebhookRead):
    """A webhook with its secret, which is shown this once."""

    secret: str
    """whsec_ and base64: the key of the signatures."""


class WebhookPage(Page[WebhookRead]):
    """Webhooks, newest first."""


class DeliveryAttemptRead(Schema):
    """One request, and the answer."""

    started_at: datetime
    duration_ms: int
    status: int | None
    """Of the answer; null where none came."""
    answer: str
    """How the answer's body began."""
    error: str | None
    """Why it does not count as delivered; null where it does."""


class DeliveryRead(Schema):
    """One event on its way to a webhook."""

    id: UUID
    message_id: str
    """The header webhook-id of every attempt."""
    type: str
    state: State
    created_at: datetime
    ended_at: datetime | None
    next_attempt_at: datetime | None
    """Null once nothing more is tried."""
    num_attempts: int
    last_attempt: DeliveryAttemptRead | None


class DeliveryDetail(DeliveryRead):
    """One event on its way to a webhook, with everything that was tried."""

    body: str
    """What is sent, byte for byte."""
    attempts: list[DeliveryAttemptRead]
    """Oldest first."""


class DeliveryPage(Page[DeliveryRead]):
    """Deliveries, newest first."""
