"""Work that is promised, and work that comes round."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


class Outbox(Base):
    """Work that a committed transaction has promised: `dispatch` or `stop` of a run, or the judgement of its
    `gates`.

    A row is claimed with a lease (lock token and expiry) under FOR UPDATE SKIP LOCKED, worked on outside any
    transaction, and deleted only by the holder of the token; an expired lease is claimed again.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("run_id", "kind", "attempt"),
        Index("ix_outbox_due_at", "due_at"),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    kind: Mapped[str]
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    due_at: Mapped[datetime] = now_column()
    num_tries: Mapped[int] = mapped_column(server_default="0")
    lock_token: Mapped[UUID | None]
    lock_expires_at: Mapped[datetime | None]
    last_error: Mapped[str | None]


class PeriodicJob(Base):
    """When a periodic job last began. Whoever moves it forward does the job: beat's task, or one that stands in."""

    __tablename__ = "periodic_job"

    name: Mapped[str] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
