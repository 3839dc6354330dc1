"""Runs in the database."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, cast, func, insert, literal, or_, select, tuple_
from sqlalchemy.orm import Session, selectinload

from backend.cursor import Key
from backend.models import Attempt, Cluster, Point, Project, Run, Series, Sweep, User
from backend.runs.stored import current

NUM_STEPS_FOR_ETA = 20
PRIORITY_LEVEL = timedelta(minutes=10)
"""What one level of priority is worth, in time waited: so a run of low priority has its turn before much newer ones,
and nobody waits for ever."""
_LINE = (Run.created_at - Run.priority * literal(PRIORITY_LEVEL), Run.created_at, Run.id)
_QUEUED = "queued"

Whose = tuple[UUID | None, UUID, UUID | None]
"""A run's user, project and sweep."""


def get(session: Session, run_id: UUID) -> Run | None:
    return session.scalar(select(Run).where(Run.id == run_id).options(selectinload(Run.attempts)))


def get_locked(session: Session, run_id: UUID) -> Run | None:
    """With its row locked, so that whoever else wants to change it waits. Reads what is committed, not what the session
    remembers."""
    statement = select(Run).where(Run.id == run_id).with_for_update(of=Run, key_share=True)
    return session.scalar(statement, execution_options={"populate_existing": True})


def get_status(session: Session, run_id: UUID) -> str | None:
    return session.scalar(select(Run.status).where(Run.id == run_id))


def get_outcome(session: Session, run_id: UUID) -> tuple[str, str | None] | None:
    """(status, what came of its gates)."""
    row = session.execute(select(Run.status, Run.gates_verdict).where(Run.id == run_id)).one_or_none()
    return None if row is None else (row[0], row[1])


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
    project: str | None = None,
) -> Sequence[Run]:
    """Newest first; of the given projects, or of all, and of them those of the one named."""
    statement = select(Run).where(*matches(statuses, search, labels, project))
    statement = statement.order_by(Run.created_at.desc(), Run.id.desc()).limit(limit)
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    if after:
        statement = statement.where(tuple_(Run.created_at, Run.id) < tuple_(*after))
    return session.scalars(statement).all()


def matches(
    statuses: Collection[str], search: str | None, labels: Mapping[str, str], project: str | None
) -> Iterator[ColumnElement[bool]]:
    """What runs have to fulfil that are looked for."""
    if project is not None:
        yield Run.project_id.in_(select(Project.id).where(Project.name == project))
    if statuses:
        yield Run.status.in_(statuses)
    if labels:
        yield Run.labels.contains(dict(labels))
    if search:
        in_text = [column.icontains(search, autoescape=True) for column in (Run.name, Run.notes)]
        yield or_(*in_text, cast(Run.id, Text).startswith(search.lower(), autoescape=True))


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


def count_ahead(session: Session, run: Run) -> int:
    """Runs that wait for a place on the run's cluster and have their turn before it."""
    own = (run.created_at - run.priority * PRIORITY_LEVEL, run.created_at, run.id)
    is_ahead = tuple_(*_LINE) < tuple_(*own)
    waiting = select(func.count()).where(Run.cluster_id == run.cluster_id, Run.status == _QUEUED, is_ahead)
    return session.scalars(waiting).one()


def list_waiting(session: Session, cluster_id: UUID) -> list[tuple[UUID, Whose]]:
    """The runs that wait for a place on a cluster, in the order of the queue, and whose each is."""
    statement = select(Run.id, Run.created_by_id, Run.project_id, Run.sweep_id).order_by(*_LINE)
    rows = session.execute(statement.where(Run.cluster_id == cluster_id, Run.status == _QUEUED))
    return [(id_, (user_id, project_id, sweep_id)) for id_, user_id, project_id, sweep_id in rows]


def count_live(session: Session, cluster_id: UUID, live: Collection[str]) -> list[tuple[Whose, int]]:
    """How many runs hold a place on a cluster, by whose they are."""
    whose = (Run.created_by_id, Run.project_id, Run.sweep_id)
    statement = select(*whose, func.count()).where(Run.cluster_id == cluster_id, Run.status.in_(live)).group_by(*whose)
    rows = session.execute(statement)
    return [((user_id, project_id, sweep_id), num) for user_id, project_id, sweep_id, num in rows]


def sweep_limits(session: Session, cluster_id: UUID) -> dict[UUID, int]:
    """How many of their runs may hold a place at once, of the sweeps on a cluster that have runs to begin."""
    waiting = select(Run.sweep_id).where(Run.cluster_id == cluster_id, Run.status == _QUEUED)
    statement = select(Sweep.id, Sweep.max_concurrent).where(Sweep.id.in_(waiting), Sweep.max_concurrent.is_not(None))
    return {id_: limit for id_, limit in session.execute(statement) if limit is not None}


def list_queue_positions(session: Session, runs: Collection[Run]) -> dict[UUID, int]:
    """Of those that wait, by their ids; 1 is the next on its cluster."""
    clusters = {run.cluster_id for run in runs if run.status == _QUEUED}
    if not clusters:
        return {}
    position = func.row_number().over(partition_by=Run.cluster_id, order_by=_LINE).label("position")
    line = select(Run.id, position).where(Run.cluster_id.in_(clusters), Run.status == _QUEUED).subquery()
    statement = select(line.c.id, line.c.position).where(line.c.id.in_([run.id for run in runs]))
    return dict(session.execute(statement).all())


def lock_launchers(session: Session, user_id: UUID | None, project_id: UUID) -> None:
    """Of two who launch for the same user or in the same project, the second waits for the first."""
    session.execute(select(User.id).where(User.id == user_id).with_for_update(key_share=True))
    session.execute(select(Project.id).where(Project.id == project_id).with_for_update(key_share=True))


def count_queued(session: Session, user_id: UUID | None, project_id: UUID) -> tuple[int, int]:
    """How many runs of the user, and of the project, wait on any cluster."""
    of_user, of_project = Run.created_by_id == user_id, Run.project_id == project_id
    statement = select(func.count().filter(of_user), func.count().filter(of_project)).where(Run.status == _QUEUED)
    num_of_user, num_of_project = session.execute(statement).one()
    return num_of_user, num_of_project


def as_values(run: Run) -> dict[str, Any]:
    """The run's columns."""
    return {column.key: getattr(run, column.key) for column in Run.__mapper__.column_attrs}
