"""Sweeps in the database."""

import sys
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, case, func, select, tuple_
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import Project, Run, Series, Sweep
from backend.runs.state import ENDED


def insert_sweep(session: Session, sweep: Sweep) -> None:
    session.add(sweep)
    session.flush()
    session.refresh(sweep)


def get(session: Session, sweep_id: UUID) -> Sweep | None:
    return session.get(Sweep, sweep_id)


def get_locked(session: Session, sweep_id: UUID) -> Sweep | None:
    """With its row locked, so that whoever else wants to change it waits. Reads what is committed, not what the session
    remembers."""
    statement = select(Sweep).where(Sweep.id == sweep_id).with_for_update(of=Sweep, key_share=True)
    return session.scalar(statement, execution_options={"populate_existing": True})


def get_project_id(session: Session, sweep_id: UUID) -> UUID | None:
    return session.scalar(select(Sweep.project_id).where(Sweep.id == sweep_id))


def list_page(
    session: Session, limit: int, after: Key | None, project_ids: Collection[UUID] | None, project: str | None = None
) -> Sequence[Sweep]:
    """Newest first; of the given projects, or of all, and of them those of the one named."""
    statement = select(Sweep).order_by(Sweep.created_at.desc(), Sweep.id.desc()).limit(limit)
    if project_ids is not None:
        statement = statement.where(Sweep.project_id.in_(project_ids))
    if project is not None:
        statement = statement.where(Sweep.project_id.in_(select(Project.id).where(Project.name == project)))
    if after:
        statement = statement.where(tuple_(Sweep.created_at, Sweep.id) < tuple_(*after))
    return session.scalars(statement).all()


def list_best(
    session: Session, sweep_ids: Collection[UUID], series: str, series_of_drafts: str | None
) -> dict[UUID, Row[UUID, UUID, str, dict[str, Any], float]]:
    """By sweep, of its run with the highest latest value of the series that is a number: (sweep, run, its name, its
    point, value). Of training of drafts that of another series, or none."""
    is_draft = Run.config["job"].astext == "draft_training"
    statement = (
        select(Run.sweep_id, Run.id, Run.name, Run.sweep_point, Series.last_value)
        .join(Series, Series.run_id == Run.id)
        .where(Run.sweep_id.in_(sweep_ids), Series.name == case((is_draft, series_of_drafts), else_=series))
        .where(Series.last_value.between(-sys.float_info.max, sys.float_info.max))
        .order_by(Run.sweep_id, Series.last_value.desc(), Run.created_at, Run.id)
        .ext(distinct_on(Run.sweep_id))
    )
    return {row.sweep_id: row for row in session.execute(statement)}


def list_runs(session: Session, sweep_id: UUID) -> Sequence[Run]:
    """In the order of their points."""
    return session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.created_at, Run.id)).all()


def lock_runs(session: Session, sweep_id: UUID) -> Sequence[Run]:
    """Those that go on, all before any is changed: whoever holds a run's place in the queue waits for no run."""
    statement = select(Run).where(Run.sweep_id == sweep_id, Run.status.not_in(ENDED)).order_by(Run.created_at, Run.id)
    locked = statement.with_for_update(of=Run, key_share=True)
    return session.scalars(locked, execution_options={"populate_existing": True}).all()


def count_statuses(session: Session, sweep_ids: Collection[UUID]) -> dict[UUID, dict[str, int]]:
    """How many runs of each sweep have each status that some have."""
    statement = select(Run.sweep_id, Run.status, func.count()).where(Run.sweep_id.in_(sweep_ids))
    counts: dict[UUID, dict[str, int]] = {sweep_id: {} for sweep_id in sweep_ids}
    for sweep_id, status, num in session.execute(statement.group_by(Run.sweep_id, Run.status).order_by(Run.status)):
        if sweep_id is not None:
            counts[sweep_id][status] = num
    return counts
