"""What users do with sweeps. Nothing here commits: the request's edge does."""

from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from backend import etag
from backend.auth import audit
from backend.auth.identity import Principal
from backend.cursor import cut, decode
from backend.errors import not_found
from backend.models import Sweep
from backend.runs.service import stop_locked
from backend.sweeps import repository, view
from backend.sweeps.launch import launch
from backend.sweeps.schemas import BestBy, SweepPage, SweepRead, SweepUpdate

__all__ = ["launch", "list_page", "read", "stop", "update"]


def read(session: Session, sweep_id: UUID) -> SweepRead:
    return view.detail(session, _get(session, sweep_id))


def list_page(
    session: Session,
    principal: Principal,
    limit: int,
    cursor: str | None,
    project: str | None = None,
    best_by: BestBy = "reward",
) -> SweepPage:
    after = decode(cursor, datetime, UUID) if cursor else None
    sweeps = repository.list_page(session, limit + 1, after, principal.projects("read"), project)
    page, next_cursor = cut(sweeps, limit, lambda sweep: (sweep.created_at, sweep.id))
    return view.page(session, page, next_cursor, best_by)


def update(
    session: Session, sweep_id: UUID, body: SweepUpdate, principal: Principal, if_match: str | None = None
) -> SweepRead:
    """Raises ApiError (412) when it was edited since the caller loaded what they have the tag of."""
    sweep = repository.get_locked(session, sweep_id)
    if sweep is None:
        raise not_found("sweep", sweep_id)
    etag.require(if_match, sweep, SweepUpdate)
    changes = body.model_dump(exclude_none=True)
    for field, value in changes.items():
        setattr(sweep, field, value)
    if changes:
        audit.record(session, principal, "sweep.update", sweep.id, sweep.project_id, fields=sorted(changes))
    return view.detail(session, sweep)


def stop(session: Session, sweep_id: UUID, principal: Principal, grace_s: float) -> SweepRead:
    """Stops every run that has not ended. Twice is as once."""
    sweep = _get(session, sweep_id)
    members = repository.lock_runs(session, sweep_id)
    if members:
        audit.record(session, principal, "sweep.stop", sweep.id, sweep.project_id)
    for run in members:
        stop_locked(session, run, principal, grace_s)
    return view.detail(session, sweep)


def _get(session: Session, sweep_id: UUID) -> Sweep:
    sweep = repository.get(session, sweep_id)
    if sweep is None:
        raise not_found("sweep", sweep_id)
    return sweep
