"""The tables. Postgres is the truth; everything else is a nudge or a view."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    """Names every constraint, so that migrations can name them too."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012
        str: Text,
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB,
        list[str]: ARRAY(Text),
    }


def _now() -> Mapped[datetime]:
    return mapped_column(server_default=func.now())


class User(Base):
    """A person. The first one is made by `foredeck up`."""

    __tablename__ = "user_account"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime] = _now()


class ApiToken(Base):
    """A bearer token. Only its hash is kept; the prefix finds it and shows which one it is."""

    __tablename__ = "api_token"
    __table_args__ = (Index("ix_api_token_run_id", "run_id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    prefix: Mapped[str] = mapped_column(unique=True)
    secret_sha256: Mapped[str]
    name: Mapped[str]
    scopes: Mapped[list[str]]
    user_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    """Set on a worker's token, which may only report to this run."""
    created_at: Mapped[datetime] = _now()
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Base):
    """A one-time login code; used once, then worthless."""

    __tablename__ = "login_link"

    code_sha256: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A logged-in browser."""

    __tablename__ = "browser_session"

    secret_sha256: Mapped[str] = mapped_column(primary_key=True)
    csrf_token: Mapped[str]
    user_id: Mapped[UUID] = mapped_column(ForeignKey("user_account.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = _now()
    expires_at: Mapped[datetime]


class Cluster(Base):
    """Where runs go: a Ray cluster, by the address of its job server."""

    __tablename__ = "cluster"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str | None]
    """http(s) address of the Ray job server; null for the embedded cluster, which is started when first needed."""
    python: Mapped[str]
    """Python interpreter on the cluster that has the workers package."""
    storage_dir: Mapped[str]
    """Folder that all machines of the cluster share, for checkpoints, spools and caches."""
    api_url: Mapped[str]
    """Base URL of this service as the cluster sees it."""
    max_concurrent_runs: Mapped[int] = mapped_column(server_default="1")
    code: Mapped[dict[str, Any]] = mapped_column(server_default='{"kind": "installed"}')
    """How our code comes to its machines: see backend.clusters.code."""
    reward_modules: Mapped[list[str]] = mapped_column(server_default="{}")
    """Python modules that runs may take reward functions from."""
    created_at: Mapped[datetime] = _now()


class Run(Base):
    """One training run: a configuration and the attempts to carry it out. Only `runs.state` writes its status."""

    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint(
            "status IN ('queued','dispatching','running','lost','succeeded','failed','stopped')",
            name="status",
        ),
        Index("ix_run_created_at_id", "created_at", "id"),
        Index("ix_run_status", "status"),
        Index("ix_run_labels", "labels", postgresql_using="gin"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
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
    max_attempts: Mapped[int] = mapped_column(server_default="3")
    current_attempt: Mapped[int] = mapped_column(server_default="0")
    """Number of the newest attempt; 0 before the first dispatch."""
    is_stop_requested: Mapped[bool] = mapped_column(server_default="false")
    cloned_from_id: Mapped[UUID | None] = mapped_column(ForeignKey("run.id", ondelete="SET NULL"))
    created_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="SET NULL"))
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
    created_at: Mapped[datetime] = _now()
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())

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
    created_at: Mapped[datetime] = _now()
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    """When the service learned of its end: from its last word, or from Ray while that is still awaited."""

    run: Mapped[Run] = relationship(back_populates="attempts")


class Outbox(Base):
    """Work that a committed transaction has promised: `dispatch` or `stop` of a run.

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
    due_at: Mapped[datetime] = _now()
    num_tries: Mapped[int] = mapped_column(server_default="0")
    lock_token: Mapped[UUID | None]
    lock_expires_at: Mapped[datetime | None]
    last_error: Mapped[str | None]


class EmitterMark(Base):
    """High-water mark of an emitter's events: everything up to `seq` is stored."""

    __tablename__ = "emitter_mark"
    __table_args__ = (
        ForeignKeyConstraint(["run_id", "attempt"], ["attempt.run_id", "attempt.number"], ondelete="CASCADE"),
    )

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    emitter: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger)


class Series(Base):
    """One metric of one run. Gives points a short key, and lists their count and latest value without a scan."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("run_id", "name"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    name: Mapped[str]
    num_points: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Values received, those of replaced attempts counted too."""
    num_non_finite: Mapped[int] = mapped_column(BigInteger, server_default="0")
    last_attempt: Mapped[int | None]
    last_step: Mapped[int | None]
    """Last step of the newest attempt that has sent some."""
    last_value: Mapped[float | None]
    """Value there, which may be non-finite."""


class Point(Base):
    """One value. Attempts never collide: a step reached again after a resume is a row of its own."""

    __tablename__ = "point"

    series_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("series.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    emitter: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
    time: Mapped[datetime]


class RolloutSample(Base):
    """A stored rollout: contract.telemetry.events.Sample as JSON."""

    __tablename__ = "rollout_sample"
    __table_args__ = (Index("ix_rollout_sample_run_id_step", "run_id", "step"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    step: Mapped[int]
    body: Mapped[dict[str, Any]]


class Alarm(Base):
    """One word of a worker about an alarm: raised, or cleared. What they come to is told by `telemetry.alarms`."""

    __tablename__ = "alarm"
    __table_args__ = (Index("ix_alarm_run_id_attempt_id", "run_id", "attempt", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    step: Mapped[int]
    name: Mapped[str]
    is_raised: Mapped[bool]
    message: Mapped[str]
    time: Mapped[datetime]


class LogLine(Base):
    """One line of a run's log, from its worker or from the control plane (emitter `control/0`)."""

    __tablename__ = "log_line"
    __table_args__ = (Index("ix_log_line_run_id_id", "run_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    emitter: Mapped[str]
    time: Mapped[datetime]
    level: Mapped[str]
    message: Mapped[str]


class Notice(Base):
    """What advanced, for live streams. Written last in its transaction under one advisory lock, so that ids become
    visible in order and a reader that has seen id n has missed nothing below n. Old rows are deleted."""

    __tablename__ = "notice"
    __table_args__ = (Index("ix_notice_created_at", "created_at"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"))
    kind: Mapped[str]
    """run, series, samples, alarm or log."""
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = _now()


class AuditEntry(Base):
    """Who changed what."""

    __tablename__ = "audit_entry"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    time: Mapped[datetime] = _now()
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    detail: Mapped[dict[str, Any]] = mapped_column(server_default="{}")


class PeriodicJob(Base):
    """When a periodic job last began. Whoever moves it forward does the job: beat's task, or one that stands in."""

    __tablename__ = "periodic_job"

    name: Mapped[str] = mapped_column(primary_key=True)
    started_at: Mapped[datetime]
