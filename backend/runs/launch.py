"""Launching: what is wrong with an order is told at once; a run that is queued is dispatched after the commit."""

from typing import Any
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend import queue
from backend.auth import access, audit
from backend.auth.identity import Principal
from backend.errors import ProblemError, invalid, not_found
from backend.gates.comparing import baseline_problems
from backend.gates.schemas import stored
from backend.models import Cluster, Project, Run
from backend.refusal import Refused
from backend.runs import allowance, repository, view
from backend.runs.events import tell
from backend.runs.paths import path_problems
from backend.runs.schemas import RunClone, RunCreate, RunRead
from backend.runs.source import Sourced, created, laid_over, resolved
from backend.runs.state import announce
from backend.runs.stored import as_meant
from backend.settings import Settings
from backend.telemetry.notices import append_log


def launch(session: Session, settings: Settings, body: RunCreate | Refused, principal: Principal) -> RunRead:
    """Queues a run. Raises ApiError (422) with every problem at once; 403 and 429 as `allowance` has it."""
    return _launched(session, settings, resolved(body, settings.examples_dir), principal)


def clone(session: Session, settings: Settings, run_id: UUID, body: RunClone, principal: Principal) -> RunRead:
    """Queues a run like another, with a merge patch on its configuration."""
    origin = repository.get(session, run_id)
    if origin is None:
        raise not_found("run", run_id)
    given: dict[str, Any] = body.model_dump(exclude={"overrides"}, exclude_none=True)
    asked = _inherited(origin) | given | {"config": laid_over(as_meant(origin.config), body.overrides)}
    return _launched(session, settings, created(asked | {"cloned_from_id": str(origin.id)}), principal)


def _inherited(origin: Run) -> dict[str, Any]:
    return {
        "name": f"{origin.name[:112]} (clone)",
        "labels": origin.labels,
        "notes": origin.notes,
        "project": origin.project.name,
        "cluster": origin.cluster.name,
        "max_attempts": origin.max_attempts,
        "gates": origin.gates,
    }


def _launched(session: Session, settings: Settings, sourced: Sourced, principal: Principal) -> RunRead:
    body = sourced.body
    problems = list(body.problems) if isinstance(body, Refused) else []
    name = body.valid("cluster") if isinstance(body, Refused) else body.cluster
    origin_id = _uuid(body.valid("cloned_from_id")) if isinstance(body, Refused) else body.cloned_from_id
    cluster = find_cluster(session, name, problems)
    if origin_id and not is_visible(session, origin_id, principal):
        problems.append(ProblemError(pointer="/cloned_from_id", detail="no such run", value=str(origin_id)))
    if not isinstance(body, Refused) and body.config and cluster:
        problems += allowance.reward_problems(body.config, cluster.name, cluster.reward_modules, sourced.pointer)
        problems += path_problems(session, body.config, cluster, principal, sourced.pointer)
        problems += allowance.secret_problems(body.config, sourced.pointer)
    if isinstance(body, Refused) or cluster is None or problems:
        raise invalid(problems)
    project = access.project_for(session, principal, body.project)
    if unknown := baseline_problems(session, body.gates, project.id, body.cloned_from_id):
        raise invalid(unknown)
    allowance.check_priority(principal, project, body.priority)
    allowance.check_room(session, settings, principal, project, 1)
    return view.detail(session, queued(session, principal, project, cluster, body))


def find_cluster(session: Session, name: str | None, problems: list[ProblemError]) -> Cluster | None:
    """The cluster of that name; where there is none, that is a further problem."""
    cluster = repository.get_cluster(session, name) if name else None
    if name and cluster is None:
        names = ", ".join(repository.list_cluster_names(session)) or "none"
        problems.append(ProblemError(pointer="/cluster", detail=f"no such cluster; there are: {names}", value=name))
    return cluster


def is_visible(session: Session, run_id: UUID, principal: Principal) -> bool:
    project_id = repository.get_project_id(session, run_id)
    return project_id is not None and principal.allows_in(project_id, "read")


def queued(
    session: Session, principal: Principal, project: Project, cluster: Cluster, body: RunCreate, **of_sweep: Any
) -> Run:
    """A run of what was checked before."""
    assert body.config is not None
    run = Run(
        project_id=project.id,
        name=body.name,
        labels=dict(body.labels),
        notes=body.notes,
        cluster_id=cluster.id,
        config=body.config.model_dump(mode="json"),
        config_sha256=body.config.sha256(),
        num_steps=body.config.grpo.num_steps if body.config.job == "grpo" else 0,
        priority=body.priority,
        max_attempts=body.max_attempts,
        cloned_from_id=body.cloned_from_id,
        gates=stored(body.gates),
        gates_verdict="pending" if body.gates else None,
        created_by_id=principal.user_id,
        status_reason="Queued.",
        created_at=func.clock_timestamp(),  # of several in one transaction, the first is the first in the queue, too
        **of_sweep,
    )
    repository.insert_run(session, run)
    queue.add(session, "dispatch", run.id, 1)
    announce(session, run)
    tell(session, run, "run.queued")
    append_log(session, run.id, 0, "info", f"Queued by {principal.name}.")
    audit.record(session, principal, "run.launch", run.id, project.id, name=run.name, config_sha256=run.config_sha256)
    return run


def _uuid(text: str | None) -> UUID | None:
    return UUID(text) if text else None
