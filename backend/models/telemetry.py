"""What workers report."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


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
    created_at: Mapped[datetime] = now_column()
