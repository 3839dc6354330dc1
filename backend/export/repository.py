"""SQL of exports."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Row, select, text
from sqlalchemy.orm import Session

from backend.models import Run, Series

_POINTS = """
SELECT step, attempt, emitter, value, time FROM point
WHERE series_id = :series_id AND (step, attempt, emitter) > (:step, :attempt, :emitter) {condition}
ORDER BY step, attempt, emitter LIMIT :limit
"""
_NEWEST = "AND attempt = (SELECT max(attempt) FROM point AS one WHERE series_id = :series_id AND one.step = point.step)"
_EVERY_POINT = text(_POINTS.format(condition=""))
_NEWEST_POINTS = text(_POINTS.format(condition=_NEWEST))


class SeriesKey(NamedTuple):
    """A series, and what its rows begin with."""

    id: int
    run_id: UUID
    run: str
    metric: str
    has_attempts: bool
    """Beside the first."""


class PointRow(NamedTuple):
    """A row of the file."""

    run_id: UUID
    run: str
    metric: str
    step: int
    attempt: int
    emitter: str
    value: float
    time: datetime


def list_runs(
    session: Session,
    run_ids: Collection[UUID] | None,
    matches: Sequence[ColumnElement[bool]],
    project_ids: Collection[UUID] | None,
    limit: int,
) -> Sequence[UUID]:
    """Those of the runs, or of all, that match; in the given projects, or in any."""
    statement = select(Run.id).where(*matches).order_by(Run.created_at, Run.id).limit(limit)
    if run_ids is not None:
        statement = statement.where(Run.id.in_(run_ids))
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    return session.scalars(statement).all()


def list_series(session: Session, run_id: UUID, names: Collection[str] | None) -> list[SeriesKey]:
    statement = select(Series.id, Series.run_id, Run.name, Series.name, Series.last_attempt != 1)
    statement = statement.join(Run, Run.id == Series.run_id).where(Series.run_id == run_id)
    if names is not None:
        statement = statement.where(Series.name.in_(names))
    return [SeriesKey(*row) for row in session.execute(statement)]


def list_points(
    session: Session, series: SeriesKey, after: tuple[int, int, str], limit: int, is_newest: bool
) -> Sequence[Row[int, int, str, float, datetime]]:
    """Step, attempt, emitter, value and time, after the first three; of each step's newest attempt, or of every one."""
    step, attempt, emitter = after
    parameters = {"series_id": series.id, "step": step, "attempt": attempt, "emitter": emitter, "limit": limit}
    statement = _NEWEST_POINTS if is_newest and series.has_attempts else _EVERY_POINT
    return session.execute(statement, parameters).all()
