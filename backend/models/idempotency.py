"""Answers that are given again."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


class IdempotencyKey(Base):
    """What a request with an Idempotency-Key was answered, written in the transaction of what it changed."""

    __tablename__ = "idempotency_key"
    __table_args__ = (Index("ix_idempotency_key_created_at", "created_at"),)

    caller: Mapped[str] = mapped_column(primary_key=True)
    """Hash of the token or browser session whose key it is; see backend.caller."""
    key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    """SHA-256 of method, path, query and body."""
    status: Mapped[int]
    headers: Mapped[dict[str, Any]]
    body: Mapped[bytes | None]
    """Null where it held a secret, which is shown once."""
    created_at: Mapped[datetime] = now_column()
