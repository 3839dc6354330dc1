"""What users do with runs. Nothing here commits: the request's edge does."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from backend import etag, queue
from backend.auth import audit
from backend.auth.identity import Principal
from backend.cursor import cut, decode
from backend.db import Database
from backend.errors import ProblemError, conflict, invalid, not_found
from backend.models import Run
from backend.runs import repository, view
from backend.runs.allowance import check_priority
from backend.runs.launch import clone, launch
from backend.runs.reports import (
    count_alarms,
    ingest_reply,
    lock_alarms,
    record_checkpoint,
    record_finished,
    record_heartbeat,
    record_started,
)
from backend.runs.schemas import RunPage, RunRead, RunUpdate
from backend.runs.state import ENDED, Status, announce, explain, transition
from backend.telemetry.notices import append_log

__all__ = [
    "clone",
    "count_alarms",
    "ingest_reply",
    "launch",
    "list_page",
    "lock_alarms",
    "read",
    "record_checkpoint",
    "record_finished",
    "record_heartbeat",
    "record_started",
    "stop",
    "stop_locked",
    "update",
]


def read(session: Session, run_id: UUID) -> RunRead:
    return view.detail(session, _get(session, run_id))


def read_at_once(database: Database, run_id: UUID) -> RunRead:
    """In a short transaction of its own, for routes that wait."""
    with database.transaction() as session:
        return read(session, run_id)


def list_page(
    session: Session,
    principal: Principal,
    limit: int,
    cursor: str | None,
    status: str | None,
    search: str | None,
    labels: Sequence[str],
    project: str | None = None,
) -> RunPage:
    after = decode(cursor, datetime, UUID) if cursor else None
    project_ids = principal.projects("read")
    runs = repository.list_page(
        session, limit + 1, after, parsed_statuses(status), search, parsed_labels(labels), project_ids, project
    )
    return view.page(session, *cut(runs, limit, lambda run: (run.created_at, run.id)))


def parsed_statuses(given: str | None) -> list[str]:
    """Of names with commas between. Raises ApiError (422)."""
    names = [name.strip() for name in given.split(",") if name.strip()] if given else []
    unknown = [name for name in names if name not in set(Status)]
    if unknown:
        detail = f"knows {', '.join(Status)}"
        raise invalid([ProblemError(parameter="status", detail=detail, value=", ".join(unknown)[:200])])
    return names


def parsed_labels(given: Sequence[str]) -> dict[str, str]:
    """Of texts like key:value. Raises ApiError (422)."""
    pairs = [text.partition(":") for text in given]
    bad = [text for text, (key, colon, _) in zip(given, pairs, strict=True) if not (key and colon)]
    if bad:
        raise invalid([ProblemError(parameter="label", detail="must look like key:value", value=bad[0][:200])])
    return {key: value for key, _, value in pairs}


def update(
    session: Session, run_id: UUID, body: RunUpdate, principal: Principal, if_match: str | None = None
) -> RunRead:
    """Raises ApiError (412) when it was edited since the caller loaded what they have the tag of."""
    run = _get_locked(session, run_id)
    etag.require(if_match, run, RunUpdate)
    changes = body.model_dump(exclude_none=True)
    if body.priority is not None:
        _requeue(session, run, body.priority, principal)
    for field, value in changes.items():
        setattr(run, field, value)
    if changes:
        announce(session, run)
        audit.record(session, principal, "run.update", run.id, run.project_id, fields=sorted(changes))
    return view.detail(session, run)


def _requeue(session: Session, run: Run, priority: int, principal: Principal) -> None:
    """Whoever waits is looked at anew: another run may be the next."""
    if run.status != Status.QUEUED:
        raise conflict(f"Run {run.name} is {run.status}: a priority counts only while a run waits in the queue.")
    check_priority(principal, run.project, priority)
    queue.wake_waiting(session, run.cluster_id)


def stop(session: Session, run_id: UUID, principal: Principal, grace_s: float) -> RunRead:
    """Stops a waiting run at once; asks a worker to stop, and has Ray end it after the grace. Twice is as once."""
    run = _get_locked(session, run_id)
    if run.status in ENDED:
        if run.status != Status.STOPPED:
            raise conflict(f"Run {run.name} has already {run.status}: there is nothing to stop.")
    else:
        stop_locked(session, run, principal, grace_s)
    return view.detail(session, run)


def stop_locked(session: Session, run: Run, principal: Principal, grace_s: float) -> None:
    """The same of a run that is locked and has not ended."""
    if not run.is_stop_requested:
        run.is_stop_requested = True
        audit.record(session, principal, "run.stop", run.id, run.project_id)
        _begin_stop(session, run, principal, grace_s)


def _begin_stop(session: Session, run: Run, principal: Principal, grace_s: float) -> None:
    if run.status == Status.QUEUED:
        transition(session, run, Status.STOPPED, f"Stopped by {principal.name} before it started.")
        return
    append_log(session, run.id, run.current_attempt, "info", f"{principal.name} asks the run to stop.")
    is_heard = run.status == Status.RUNNING
    explain(session, run, "Stopping: the worker finishes its stage." if is_heard else "Stopping: asking Ray.")
    queue.add(session, "stop", run.id, run.current_attempt, due_in_s=grace_s if is_heard else 0)


def config_yaml(session: Session, run_id: UUID) -> str:
    return view.config_yaml(_get(session, run_id))


def _get(session: Session, run_id: UUID) -> Run:
    run = repository.get(session, run_id)
    if run is None:
        raise not_found("run", run_id)
    return run


def _get_locked(session: Session, run_id: UUID) -> Run:
    run = repository.get_locked(session, run_id)
    if run is None:
        raise not_found("run", run_id)
    return run
