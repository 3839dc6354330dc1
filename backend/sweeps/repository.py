"""Sweeps in the database."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import Run, Sweep
from backend.runs.state import ENDED


def insert_sweep(session: Session, sweep: Sweep) -> None:
    session.add(sweep)
    session.flush()
    session.refresh(sweep)


def get(session: Session, sweep_id: UUID) -> Sweep | None:
    return session.get(Sweep, sweep_id)


def get_project_id(session: Session, sweep_id: UUID) -> UUID | None:
    return session.scalar(select(Sweep.project_id).where(Sweep.id == sweep_id))


def list_page(session: Session, limit: int, after: Key | None, project_ids: Collection[UUID] | None) -> Sequence[Sweep]:
    """Newest first; of the given projects, or of all."""
    statement = select(Sweep).order_by(Sweep.created_at.desc(), Sweep.id.desc()).limit(limit)
    if project_ids is not None:
        statement = statement.where(Sweep.project_id.in_(project_ids))
    if after:
        statement = statement.where(tuple_(Sweep.created_at, Sweep.id) < tuple_(*after))
    return session.scalars(statement).all()


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
