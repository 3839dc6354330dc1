"""What users do with runs. Nothing here commits: the request's edge does."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from backend import queue
from backend.auth import access, audit
from backend.auth.identity import Principal
from backend.cursor import cut, decode
from backend.db import Database
from backend.errors import ProblemError, conflict, invalid, not_found
from backend.models import Run
from backend.refusal import KEEP, Refused
from backend.runs import repository, view
from backend.runs.merge_patch import merge_patch
from backend.runs.reports import (
    count_alarms,
    ingest_reply,
    record_checkpoint,
    record_finished,
    record_heartbeat,
    record_started,
)
from backend.runs.schemas import RunClone, RunCreate, RunPage, RunRead, RunUpdate
from backend.runs.state import ENDED, Status, announce, explain, transition
from backend.runs.stored import as_meant
from backend.telemetry.notices import append_log
from contract.config.variants import carried_over

_CREATE: TypeAdapter[RunCreate | Refused] = TypeAdapter(Annotated[RunCreate, KEEP])

__all__ = [
    "clone",
    "count_alarms",
    "ingest_reply",
    "launch",
    "list_page",
    "read",
    "record_checkpoint",
    "record_finished",
    "record_heartbeat",
    "record_started",
    "stop",
    "update",
]


def launch(session: Session, body: RunCreate | Refused, principal: Principal) -> RunRead:
    """Queues a run. It is dispatched after the commit. Raises ApiError (422) with every problem at once."""
    problems = list(body.problems) if isinstance(body, Refused) else []
    name = body.valid("cluster") if isinstance(body, Refused) else body.cluster
    origin_id = _uuid(body.valid("cloned_from_id")) if isinstance(body, Refused) else body.cloned_from_id
    cluster = repository.get_cluster(session, name) if name else None
    if name and cluster is None:
        names = ", ".join(repository.list_cluster_names(session)) or "none"
        problems.append(ProblemError(pointer="/cluster", detail=f"no such cluster; there are: {names}", value=name))
    if origin_id and not _is_visible(session, origin_id, principal):
        problems.append(ProblemError(pointer="/cloned_from_id", detail="no such run", value=str(origin_id)))
    if isinstance(body, Refused) or cluster is None or problems:
        raise invalid(problems)
    project = access.project_for(session, principal, body.project)
    run = Run(
        project_id=project.id,
        name=body.name,
        labels=dict(body.labels),
        notes=body.notes,
        cluster_id=cluster.id,
        config=body.config.model_dump(mode="json"),
        config_sha256=body.config.sha256(),
        num_steps=body.config.grpo.num_steps if body.config.job == "grpo" else 0,
        max_attempts=body.max_attempts,
        cloned_from_id=body.cloned_from_id,
        created_by_id=principal.user_id,
        status_reason="Queued.",
    )
    repository.insert_run(session, run)
    queue.add(session, "dispatch", run.id, 1)
    announce(session, run)
    append_log(session, run.id, 0, "info", f"Queued by {principal.name}.")
    audit.record(session, principal, "run.launch", run.id, project.id, name=run.name, config_sha256=run.config_sha256)
    return view.detail(session, run)


def _is_visible(session: Session, run_id: UUID, principal: Principal) -> bool:
    project_id = repository.get_project_id(session, run_id)
    return project_id is not None and principal.allows_in(project_id, "read")


def _uuid(text: str | None) -> UUID | None:
    return UUID(text) if text else None


def clone(session: Session, run_id: UUID, body: RunClone, principal: Principal) -> RunRead:
    """Launches a run like another, with a merge patch on its configuration."""
    origin = _get(session, run_id)
    config = carried_over(as_meant(origin.config), body.overrides)
    given: dict[str, Any] = body.model_dump(exclude={"overrides"}, exclude_none=True)
    inherited = {
        "name": f"{origin.name[:112]} (clone)",
        "labels": origin.labels,
        "notes": origin.notes,
        "project": origin.project.name,
        "cluster": origin.cluster.name,
        "max_attempts": origin.max_attempts,
    }
    asked = {
        **inherited,
        **given,
        "config": merge_patch(config, body.overrides),
        "cloned_from_id": str(origin.id),
    }
    return launch(session, _renamed(_CREATE.validate_python(asked)), principal)


def _renamed(body: RunCreate | Refused) -> RunCreate | Refused:
    """What is wrong with a clone's configuration is wrong with its overrides."""
    if isinstance(body, RunCreate):
        return body
    renamed = [
        problem.model_copy(update={"pointer": re.sub("^/config", "/overrides", problem.pointer or "")})
        for problem in body.problems
    ]
    return Refused(body.data, renamed)


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
) -> RunPage:
    after = decode(cursor, datetime, UUID) if cursor else None
    projects = principal.projects("read")
    runs = repository.list_page(session, limit + 1, after, _statuses(status), search, _labels(labels), projects)
    return view.page(session, *cut(runs, limit, lambda run: (run.created_at, run.id)))


def _statuses(given: str | None) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()] if given else []
    unknown = [name for name in names if name not in set(Status)]
    if unknown:
        detail = f"knows {', '.join(Status)}"
        raise invalid([ProblemError(parameter="status", detail=detail, value=", ".join(unknown)[:200])])
    return names


def _labels(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition(":") for text in given]
    bad = [text for text, (key, colon, _) in zip(given, pairs, strict=True) if not (key and colon)]
    if bad:
        raise invalid([ProblemError(parameter="label", detail="must look like key:value", value=bad[0][:200])])
    return {key: value for key, _, value in pairs}


def update(session: Session, run_id: UUID, body: RunUpdate, principal: Principal) -> RunRead:
    run = _get_locked(session, run_id)
    changes = body.model_dump(exclude_none=True)
    for field, value in changes.items():
        setattr(run, field, value)
    if changes:
        announce(session, run)
        audit.record(session, principal, "run.update", run.id, run.project_id, fields=sorted(changes))
    return view.detail(session, run)


def stop(session: Session, run_id: UUID, principal: Principal, grace_s: float) -> RunRead:
    """Stops a waiting run at once; asks a worker to stop, and has Ray end it after the grace. Twice is as once."""
    run = _get_locked(session, run_id)
    if run.status in ENDED:
        if run.status != Status.STOPPED:
            raise conflict(f"Run {run.name} has already {run.status}: there is nothing to stop.")
    elif not run.is_stop_requested:
        run.is_stop_requested = True
        audit.record(session, principal, "run.stop", run.id, run.project_id)
        _begin_stop(session, run, principal, grace_s)
    return view.detail(session, run)


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
