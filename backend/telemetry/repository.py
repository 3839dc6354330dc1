"""SQL of reading: series, samples, log lines and notices."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Row, delete, func, select, text
from sqlalchemy.orm import Session

from backend.models import Alarm, Attempt, LogLine, Notice, RolloutSample, Run, Series
from backend.telemetry.schemas import LogQuery


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One notice."""

    id: int
    run_id: UUID
    kind: str
    body: dict[str, Any]
    project_id: UUID
    """Of the run."""


LEVELS = ("debug", "info", "warning", "error")

# NaN compares as the greatest value in Postgres, so one range leaves out all three. The clamp in avg() keeps its sum
# of squares, which Postgres computes beside the mean, from overflowing.
_BUCKETS = """
WITH measured AS (
  SELECT series_id, step, attempt, value, value > '-Infinity' AND value < 'Infinity' AS is_finite
  FROM {points}
), bucket AS (
  SELECT series_id, step / :width * :width AS step, max(attempt) AS attempt,
         count(*) FILTER (WHERE NOT is_finite) AS num_non_finite,
         min(value) FILTER (WHERE is_finite) AS low, max(value) FILTER (WHERE is_finite) AS high,
         avg(greatest(least(value, 1e150), -1e150)) FILTER (WHERE is_finite) AS mean
  FROM measured GROUP BY series_id, step / :width
)
SELECT series_id, CAST(array_to_json(array_agg(step ORDER BY step)) AS text) AS step,
       CAST(array_to_json(array_agg(greatest(least(mean, high), low) ORDER BY step)) AS text) AS value,
       CAST(array_to_json(array_agg(low ORDER BY step)) AS text) AS min,
       CAST(array_to_json(array_agg(high ORDER BY step)) AS text) AS max,
       CAST(array_to_json(array_agg(attempt ORDER BY step)) AS text) AS attempt,
       CAST(sum(num_non_finite) AS bigint) AS num_non_finite
FROM bucket GROUP BY series_id
"""
_POINTS = "point WHERE series_id = ANY(CAST(:ids AS bigint[])) AND step >= :from_step"
_NEWEST_POINTS = """(
  SELECT *, max(attempt) OVER (PARTITION BY series_id, step) AS newest
  FROM point WHERE series_id = ANY(CAST(:ids AS bigint[])) AND step >= :from_step
) AS ranked WHERE attempt = newest"""
_BUCKETS_OF_ONE_ATTEMPT = text(_BUCKETS.format(points=_POINTS))
_BUCKETS_OF_ATTEMPTS = text(_BUCKETS.format(points=_NEWEST_POINTS))

_LAST_STEP = text("""
SELECT max(last.step) FROM unnest(CAST(:ids AS bigint[])) AS series(id), LATERAL (
  SELECT step FROM point WHERE series_id = series.id ORDER BY step DESC LIMIT 1
) AS last
""")

_SAMPLES = text("""
SELECT CAST(body || jsonb_build_object('id', id, 'attempt', attempt, 'step', step) AS text)
FROM rollout_sample AS sample
WHERE run_id = :run_id AND step = :step
  AND attempt = (SELECT max(attempt) FROM rollout_sample WHERE run_id = :run_id AND step = :step)
ORDER BY id LIMIT :limit
""")

_SAMPLES_OF_RUN = text("""
SELECT CAST(body || jsonb_build_object('id', id, 'attempt', attempt, 'step', step) AS text), step, id
FROM rollout_sample AS sample
WHERE run_id = :run_id AND (step, id) > (:step, :id)
  AND attempt = (SELECT max(attempt) FROM rollout_sample WHERE run_id = :run_id AND step = sample.step)
ORDER BY step, id LIMIT :limit
""")


def list_series(session: Session, run_id: UUID, names: Collection[str] | None = None) -> Sequence[Series]:
    statement = select(Series).where(Series.run_id == run_id)
    return session.scalars(statement if names is None else statement.where(Series.name.in_(names))).all()


def latest_values(
    session: Session, run_ids: Collection[UUID], names: Collection[str] | None
) -> Sequence[Row[UUID, str, float | None]]:
    statement = select(Series.run_id, Series.name, Series.last_value).where(Series.run_id.in_(run_ids))
    return session.execute(statement if names is None else statement.where(Series.name.in_(names))).all()


def last_step(session: Session, series_ids: Sequence[int]) -> int | None:
    """The highest step that any attempt reached in one of the series."""
    return session.execute(_LAST_STEP, {"ids": series_ids}).scalar()


def list_buckets(
    session: Session, series: Sequence[Series], width: int, from_step: int
) -> Sequence[Row[int, str, str, str, str, str, int]]:
    """For each series that has points: its id and, as JSON texts, its columns."""
    has_one_attempt = all(one.last_attempt == 1 for one in series)  # the first, so nothing was replaced
    statement = _BUCKETS_OF_ONE_ATTEMPT if has_one_attempt else _BUCKETS_OF_ATTEMPTS
    parameters = {"ids": [one.id for one in series], "width": width, "from_step": from_step}
    return session.execute(statement, parameters).all()


def list_sample_steps(session: Session, run_id: UUID) -> list[int]:
    statement = select(RolloutSample.step).where(RolloutSample.run_id == run_id).distinct()
    return list(session.scalars(statement.order_by(RolloutSample.step)))


def list_samples(session: Session, run_id: UUID, step: int, limit: int) -> list[str]:
    """JSON texts of the newest attempt's samples of the step."""
    return list(session.scalars(_SAMPLES, {"run_id": run_id, "step": step, "limit": limit}))


def list_samples_after(
    session: Session, run_id: UUID, after: tuple[int, int], limit: int
) -> Sequence[Row[str, int, int]]:
    """JSON texts, steps and ids of the run's samples, by step and id after the given; each step's newest attempt."""
    step, sample_id = after
    parameters = {"run_id": run_id, "step": step, "id": sample_id, "limit": limit}
    return session.execute(_SAMPLES_OF_RUN, parameters).all()


def list_alarm_words(session: Session, run_id: UUID) -> Sequence[Alarm]:
    """What workers said about alarms, attempt by attempt, in order."""
    return session.scalars(select(Alarm).where(Alarm.run_id == run_id).order_by(Alarm.attempt, Alarm.id)).all()


def list_later_attempts(session: Session, run_id: UUID) -> Sequence[Attempt]:
    """The attempts after the first whose workers have reported, in order."""
    later = (Attempt.run_id == run_id) & (Attempt.number > 1) & Attempt.started_at.is_not(None)
    return session.scalars(select(Attempt).where(later).order_by(Attempt.number)).all()


def list_log_lines(session: Session, run_id: UUID, query: LogQuery) -> list[LogLine]:
    """Lines in ascending order: with `after` the first that follow it, otherwise the last."""
    statement = select(LogLine).where(LogLine.run_id == run_id)
    if query.after is not None:
        statement = statement.where(LogLine.id > query.after)
    if query.before is not None:
        statement = statement.where(LogLine.id < query.before)
    if query.level is not None:
        statement = statement.where(LogLine.level.in_(LEVELS[LEVELS.index(query.level) :]))
    if query.search:
        statement = statement.where(LogLine.message.icontains(query.search, autoescape=True))
    order = LogLine.id.desc() if query.after is None else LogLine.id.asc()
    lines = list(session.scalars(statement.order_by(order).limit(query.limit)))
    return lines[::-1] if query.after is None else lines


def list_existing(
    session: Session, run_ids: Collection[UUID], project_ids: Collection[UUID] | None = None
) -> set[UUID]:
    """Those of the runs that exist in the given projects, or in any."""
    statement = select(Run.id).where(Run.id.in_(run_ids))
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    return set(session.scalars(statement))


def notice_range(session: Session) -> tuple[int | None, int | None]:
    """Ids of the oldest and the newest notice."""
    row = session.execute(select(func.min(Notice.id), func.max(Notice.id))).one()
    return row[0], row[1]


def list_notices(
    session: Session,
    after: int,
    limit: int,
    up_to: int | None = None,
    run_ids: Collection[UUID] | None = None,
    project_ids: Collection[UUID] | None = None,
) -> list[NoticeRow]:
    statement = (
        select(Notice.id, Notice.run_id, Notice.kind, Notice.body, Run.project_id)
        .join(Run, Run.id == Notice.run_id)
        .where(Notice.id > after)
    )
    if up_to is not None:
        statement = statement.where(Notice.id <= up_to)
    if run_ids is not None:
        statement = statement.where(Notice.run_id.in_(run_ids))
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    return [NoticeRow(*row) for row in session.execute(statement.order_by(Notice.id).limit(limit))]


def delete_notices(session: Session, max_age_s: float) -> int:
    """Deletes every notice below the newest of those that are too old, which stays: where history begins, a row is."""
    limit = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, max_age_s)
    newest_old = select(func.max(Notice.id)).where(Notice.created_at < limit).scalar_subquery()
    return len(session.scalars(delete(Notice).where(Notice.id < newest_old).returning(Notice.id)).all())
