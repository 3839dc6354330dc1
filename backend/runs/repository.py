"""Runs in the database."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Text, cast, func, insert, or_, select, tuple_
from sqlalchemy.orm import Session, selectinload

from backend.cursor import Key
from backend.models import Attempt, Cluster, Point, Run, Series, User
from backend.runs.stored import current

NUM_STEPS_FOR_ETA = 20


def get(session: Session, run_id: UUID) -> Run | None:
    return session.scalar(select(Run).where(Run.id == run_id).options(selectinload(Run.attempts)))


def get_locked(session: Session, run_id: UUID) -> Run | None:
    """With its row locked, so that whoever else wants to change it waits. Reads what is committed, not what the session
    remembers."""
    statement = select(Run).where(Run.id == run_id).with_for_update(of=Run, key_share=True)
    return session.scalar(statement, execution_options={"populate_existing": True})


def get_status(session: Session, run_id: UUID) -> str | None:
    return session.scalar(select(Run.status).where(Run.id == run_id))


def get_project_id(session: Session, run_id: UUID) -> UUID | None:
    return session.scalar(select(Run.project_id).where(Run.id == run_id))


def get_orders(session: Session, run_id: UUID) -> tuple[int, bool, str]:
    """(current attempt, whether a stop was asked for, status)."""
    statement = select(Run.current_attempt, Run.is_stop_requested, Run.status).where(Run.id == run_id)
    attempt, is_stop_requested, status = session.execute(statement).one()
    return attempt, is_stop_requested, status


def insert_run(session: Session, run: Run) -> None:
    session.add(run)
    session.flush()
    session.refresh(run)


def get_attempt(session: Session, run_id: UUID, number: int) -> Attempt | None:
    return session.get(Attempt, (run_id, number))


def count_counted_attempts(session: Session, run_id: UUID) -> int:
    """Attempts that count against max_attempts: they crashed or failed and brought no new checkpoint."""
    counts = Attempt.outcome.in_(["crashed", "failed"]) & Attempt.last_checkpoint_step.is_(None)
    return session.scalars(select(func.count()).where(Attempt.run_id == run_id, counts)).one()


def count_latest_vain_attempts(session: Session, run_id: UUID) -> int:
    """How many attempts in a row, up to the newest, brought no new checkpoint."""
    brought = (Attempt.run_id == run_id) & Attempt.last_checkpoint_step.is_not(None)
    last_good = select(func.coalesce(func.max(Attempt.number), 0)).where(brought).scalar_subquery()
    return session.scalars(select(func.count()).where(Attempt.run_id == run_id, Attempt.number > last_good)).one()


def insert_attempt(session: Session, run: Run, number: int) -> None:
    """With the configuration as the worker of this version reads it."""
    resolved = current(run.config)
    session.execute(
        insert(Attempt).values(
            run_id=run.id,
            number=number,
            submission_id=f"{run.id}-{number}",
            config=run.config if resolved is None else resolved.model_dump(mode="json"),
            config_sha256=run.config_sha256 if resolved is None else resolved.sha256(),
        )
    )


def list_page(
    session: Session,
    limit: int,
    after: Key | None,
    statuses: Collection[str],
    search: str | None,
    labels: Mapping[str, str],
    project_ids: Collection[UUID] | None,
) -> Sequence[Run]:
    """Newest first; of the given projects, or of all."""
    statement = select(Run).order_by(Run.created_at.desc(), Run.id.desc()).limit(limit)
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    if after:
        statement = statement.where(tuple_(Run.created_at, Run.id) < tuple_(*after))
    if statuses:
        statement = statement.where(Run.status.in_(statuses))
    if labels:
        statement = statement.where(Run.labels.contains(dict(labels)))
    if search:
        in_text = [column.icontains(search, autoescape=True) for column in (Run.name, Run.notes)]
        statement = statement.where(or_(*in_text, cast(Run.id, Text).startswith(search.lower(), autoescape=True)))
    return session.scalars(statement).all()


def get_step_times(session: Session, run_id: UUID) -> tuple[int, float] | None:
    """(last finished step, mean wall time of the latest steps in seconds); None before the first."""
    series_id = select(Series.id).where(Series.run_id == run_id, Series.name == "time/step_s").scalar_subquery()
    latest = (
        select(Point.step, Point.value)
        .where(Point.series_id == series_id)
        .order_by(Point.step.desc(), Point.attempt.desc())
        .limit(NUM_STEPS_FOR_ETA)
        .subquery()
    )
    last_step, mean = session.execute(select(func.max(latest.c.step), func.avg(latest.c.value))).one()
    return None if last_step is None else (last_step, mean)


def get_user_name(session: Session, user_id: UUID | None) -> str | None:
    return session.scalar(select(User.name).where(User.id == user_id)) if user_id else None


def get_cluster(session: Session, name: str) -> Cluster | None:
    return session.scalar(select(Cluster).where(Cluster.name == name))


def list_cluster_names(session: Session) -> Sequence[str]:
    return session.scalars(select(Cluster.name).order_by(Cluster.name)).all()


def lock_cluster(session: Session, cluster_id: UUID) -> Cluster:
    """Of two who count a cluster's places, the second waits for the first."""
    statement = select(Cluster).where(Cluster.id == cluster_id).with_for_update(key_share=True)
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


def count_ahead(session: Session, run: Run, live: Collection[str]) -> tuple[int, int]:
    """(runs that hold a place on the run's cluster, runs that have waited for one longer)."""
    same = (Run.cluster_id == run.cluster_id) & (Run.id != run.id)
    is_older = tuple_(Run.created_at, Run.id) < tuple_(run.created_at, run.id)
    statement = select(
        func.count().filter(Run.status.in_(live)), func.count().filter((Run.status == "queued") & is_older)
    ).where(same, Run.status.in_([*live, "queued"]))
    num_live, num_waiting = session.execute(statement).one()
    return num_live, num_waiting


def as_values(run: Run) -> dict[str, Any]:
    """The run's columns."""
    return {column.key: getattr(run, column.key) for column in Run.__mapper__.column_attrs}
