"""Webhooks, what is to be delivered to them, and what became of it."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


class Webhook(Base):
    """An address that is told of a project's events.

    Whoever delivers to it holds its lease (lock token and expiry), claimed under FOR UPDATE SKIP LOCKED: a receiver has
    one request at a time, and a slow one keeps nobody but itself waiting.
    """

    __tablename__ = "webhook"
    __table_args__ = (Index("ix_webhook_project_id_created_at_id", "project_id", "created_at", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id", ondelete="CASCADE"))
    name: Mapped[str]
    url: Mapped[str]
    events: Mapped[list[str]]
    is_enabled: Mapped[bool] = mapped_column(server_default="true")
    disabled_reason: Mapped[str | None]
    """Set where the service itself has disabled it."""
    secret: Mapped[str]
    """What deliveries are signed with, as webhooks.sealing keeps it."""
    previous_secret: Mapped[str | None]
    previous_secret_expires_at: Mapped[datetime | None]
    """Until then deliveries are signed with both."""
    created_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="SET NULL"))
    created_at: Mapped[datetime] = now_column()
    updated_at: Mapped[datetime] = now_column()
    """By a person; deliveries leave it alone."""
    failing_since: Mapped[datetime | None]
    """The first failure after the last success."""
    num_failures: Mapped[int] = mapped_column(server_default="0")
    """In a row."""
    paused_until: Mapped[datetime | None]
    """After failures, the next one is not sent before."""
    lock_token: Mapped[UUID | None]
    lock_expires_at: Mapped[datetime | None]


class WebhookDelivery(Base):
    """One event for one webhook: written by the transaction that makes it true, sent until the receiver takes it."""

    __tablename__ = "webhook_delivery"
    __table_args__ = (
        CheckConstraint("state IN ('pending','succeeded','failed')", name="state"),
        Index("ix_webhook_delivery_webhook_id_created_at_id", "webhook_id", "created_at", "id"),
        Index(
            "ix_webhook_delivery_webhook_id_due_at", "webhook_id", "due_at", postgresql_where=text("due_at IS NOT NULL")
        ),
        Index("ix_webhook_delivery_created_at", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    webhook_id: Mapped[UUID] = mapped_column(ForeignKey("webhook.id", ondelete="CASCADE"))
    type: Mapped[str]
    body: Mapped[str]
    """The bytes that are sent and signed: every attempt sends the same."""
    state: Mapped[str] = mapped_column(server_default="pending")
    due_at: Mapped[datetime | None] = mapped_column(server_default=func.now())
    """Null once nothing is left to be done."""
    num_tries: Mapped[int] = mapped_column(server_default="0")
    """Since it was last asked for."""
    created_at: Mapped[datetime] = now_column()
    ended_at: Mapped[datetime | None]


class WebhookAttempt(Base):
    """One request of a delivery, and the answer."""

    __tablename__ = "webhook_attempt"
    __table_args__ = (Index("ix_webhook_attempt_delivery_id_id", "delivery_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    delivery_id: Mapped[UUID] = mapped_column(ForeignKey("webhook_delivery.id", ondelete="CASCADE"))
    started_at: Mapped[datetime]
    duration_ms: Mapped[int]
    status: Mapped[int | None]
    answer: Mapped[str]
    """How the answer's body began; secrets are left out."""
    error: Mapped[str | None]
    """Why it does not count as delivered, in words."""
