"""Runs and the attempts to carry them out."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from backend.models.auth import Project
from backend.models.base import Base, now_column
from backend.models.clusters import Cluster


class Run(Base):
    """One training run: a configuration and the attempts to carry it out. Only `runs.state` writes its status."""

    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint(
            "status IN ('queued','dispatching','running','lost','succeeded','failed','stopped')",
            name="status",
        ),
        Index("ix_run_created_at_id", "created_at", "id"),
        Index("ix_run_project_id_created_at_id", "project_id", "created_at", "id"),
        Index("ix_run_status", "status"),
        Index("ix_run_labels", "labels", postgresql_using="gin"),
        Index("ix_run_sweep_id", "sweep_id"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    labels: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    notes: Mapped[str] = mapped_column(server_default="")
    status: Mapped[str] = mapped_column(server_default="queued")
    status_reason: Mapped[str] = mapped_column(server_default="")
    """One sentence for people: why it is in this status."""
    cluster_id: Mapped[UUID] = mapped_column(ForeignKey("cluster.id"))
    config: Mapped[dict[str, Any]]
    """The RunConfig as it was given, defaults filled in."""
    config_sha256: Mapped[str]
    priority: Mapped[int] = mapped_column(server_default="0")
    """In the queue of its cluster: see runs.waiting."""
    max_attempts: Mapped[int] = mapped_column(server_default="3")
    current_attempt: Mapped[int] = mapped_column(server_default="0")
    """Number of the newest attempt; 0 before the first dispatch."""
    is_stop_requested: Mapped[bool] = mapped_column(server_default="false")
    cloned_from_id: Mapped[UUID | None] = mapped_column(ForeignKey("run.id", ondelete="SET NULL"))
    created_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="SET NULL"))
    gates: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default="[]")
    """What it has to come to: backend.gates.schemas.Gate, each."""
    gates_verdict: Mapped[str | None]
    """passed, failed, or pending until it has ended and was judged; null where there is nothing to judge."""
    sweep_id: Mapped[UUID | None] = mapped_column(ForeignKey("sweep.id", ondelete="SET NULL"))
    sweep_point: Mapped[dict[str, Any] | None]
    """Its values of the sweep's keys: `{"drafter.draft_length": 3}`."""
    stage: Mapped[str | None]
    """Stage of the last heartbeat."""
    step: Mapped[int] = mapped_column(server_default="0")
    """GRPO step of the last heartbeat."""
    num_steps: Mapped[int]
    stage_progress_fraction: Mapped[float | None]
    last_heartbeat_at: Mapped[datetime | None]
    """When the service received it, by the service's clock."""
    last_checkpoint_step: Mapped[int | None]
    last_checkpoint_path: Mapped[str | None]
    """Its folder, as the cluster's machines see it."""
    num_active_alarms: Mapped[int] = mapped_column(server_default="0")
    """What the run's rows of `alarm` come to, counted anew with each of them."""
    created_at: Mapped[datetime] = now_column()
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())

    project: Mapped[Project] = relationship(lazy="joined")
    cluster: Mapped[Cluster] = relationship(lazy="joined")
    attempts: Mapped[list["Attempt"]] = relationship(order_by="Attempt.number", back_populates="run")


class Attempt(Base):
    """One try at a run: one Ray job. It stores the configuration that it ran with."""

    __tablename__ = "attempt"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[str] = mapped_column(unique=True)
    """`{run}-{attempt}`: Ray refuses a second job of the same id, which makes dispatch idempotent."""
    config: Mapped[dict[str, Any]]
    config_sha256: Mapped[str]
    outcome: Mapped[str | None]
    """succeeded, failed, stopped or crashed; null while it goes on."""
    error: Mapped[str | None]
    resumed_from_step: Mapped[int | None]
    last_checkpoint_step: Mapped[int | None]
    """Of its checkpoints beyond those of earlier attempts; null when it has brought none."""
    created_at: Mapped[datetime] = now_column()
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    """When the service learned of its end: from its last word, or from Ray while that is still awaited."""

    run: Mapped[Run] = relationship(back_populates="attempts")
