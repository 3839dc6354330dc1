"""Launching a sweep: every point is checked before any is stored, and all are stored in one transaction."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth import access, audit
from backend.auth.identity import Principal
from backend.errors import ProblemError, invalid
from backend.gates.comparing import baseline_problems
from backend.models import Cluster, Project, Sweep
from backend.refusal import Refused
from backend.runs import allowance
from backend.runs import repository as runs
from backend.runs.launch import find_cluster, is_visible, queued
from backend.runs.paths import path_problems
from backend.runs.schemas import RunCreate
from backend.runs.source import base_of, laid_over, touches
from backend.runs.stored import as_meant
from backend.settings import Settings
from backend.sweeps import repository, view
from backend.sweeps.points import Findings, Point, config_of, points_of, words
from backend.sweeps.schemas import SweepCreate, SweepRead
from contract.config import RunConfig

MAX_PROBLEMS = 100
MAX_NAME = 120
_OF_EACH_RUN = ("labels", "notes", "priority", "max_attempts", "gates")


class _Plan(NamedTuple):
    """A sweep in which nothing is wrong."""

    base: dict[str, Any]
    points: list[tuple[Point, RunConfig]]


def launch(session: Session, settings: Settings, body: SweepCreate | Refused, principal: Principal) -> SweepRead:
    """Queues all runs of a sweep, or none. Raises ApiError (422) with every problem of every point at once; 403 and 429
    as `allowance` has it."""
    problems = list(body.problems) if isinstance(body, Refused) else []
    name = body.valid("cluster") if isinstance(body, Refused) else body.cluster
    cluster = find_cluster(session, name, problems)
    plan = _planned(session, settings, body, cluster, problems, principal)
    if isinstance(body, Refused) or cluster is None or problems:
        raise invalid(problems[:MAX_PROBLEMS])
    project = access.project_for(session, principal, body.project)
    if unknown := baseline_problems(session, body.gates, project.id, body.base_run_id):
        raise invalid(unknown)
    allowance.check_priority(principal, project, body.priority)
    allowance.check_room(session, settings, principal, project, len(plan.points))
    return view.detail(session, _stored(session, principal, project, cluster, body, plan))


def _planned(
    session: Session,
    settings: Settings,
    body: SweepCreate | Refused,
    cluster: Cluster | None,
    problems: list[ProblemError],
    principal: Principal,
) -> _Plan:
    """What is wrong is added to the problems."""
    data = body.data if isinstance(body, Refused) else body.model_dump(mode="json", exclude_unset=True)
    if not isinstance(data, dict):
        return _Plan({}, [])
    base = _base(session, settings.examples_dir, data, problems, principal)
    points: list[Point] = []
    if not touches(problems, "/axes", "/points"):
        points, found = points_of(data, settings.max_sweep_runs)
        problems += found
    if base is None:
        return _Plan({}, [])
    return _Plan(base, _checked(session, data, base, points, cluster, problems, principal))


def _base(
    session: Session, examples_dir: Path, data: Mapping[str, Any], problems: list[ProblemError], principal: Principal
) -> dict[str, Any] | None:
    """What the runs have in common."""
    if touches(problems, "/base_run_id", "/overrides"):
        return None
    if data.get("base_run_id") is None:
        base, found = base_of(data, problems, examples_dir)
    else:
        base, found = _of_run(session, data, principal)
    problems += found
    return None if base is None else laid_over(base, data.get("overrides", {}))


def _of_run(
    session: Session, data: Mapping[str, Any], principal: Principal
) -> tuple[dict[str, Any] | None, list[ProblemError]]:
    run_id = UUID(data["base_run_id"])
    if data.get("config") is not None or data.get("example") is not None:
        detail = "takes the place of `config` and `example`: leave the others out"
        return None, [ProblemError(pointer="/base_run_id", detail=detail, value=str(run_id))]
    run = runs.get(session, run_id) if is_visible(session, run_id, principal) else None
    if run is None:
        return None, [ProblemError(pointer="/base_run_id", detail="no such run", value=str(run_id))]
    return as_meant(run.config), []


def _checked(
    session: Session,
    data: Mapping[str, Any],
    base: Mapping[str, Any],
    points: Sequence[Point],
    cluster: Cluster | None,
    problems: list[ProblemError],
    principal: Principal,
) -> list[tuple[Point, RunConfig]]:
    """Each point with its configuration."""
    findings, checked = Findings(data), []
    for index, point in enumerate(points):
        config = config_of(base, point)
        if isinstance(config, Refused):
            wrong = config.problems
        else:
            checked.append((point, config))
            wrong = _refused(session, config, cluster, principal) if cluster else []
        for problem in wrong:
            findings.add(index, point, problem)
    problems += findings.problems()
    return checked


def _refused(session: Session, config: RunConfig, cluster: Cluster, principal: Principal) -> list[ProblemError]:
    """What the cluster does not allow its runs."""
    reward_problems = allowance.reward_problems(config, cluster.name, cluster.reward_modules, "")
    return [
        *reward_problems,
        *path_problems(session, config, cluster, principal, ""),
        *allowance.secret_problems(config, ""),
    ]


def _stored(
    session: Session, principal: Principal, project: Project, cluster: Cluster, body: SweepCreate, plan: _Plan
) -> Sweep:
    sweep = Sweep(
        project_id=project.id,
        name=body.name,
        labels=dict(body.labels),
        notes=body.notes,
        cluster_id=cluster.id,
        config=plan.base,
        keys=list(dict.fromkeys(key for point, _ in plan.points for key in point)),
        max_concurrent=body.max_concurrent,
        created_by_id=principal.user_id,
    )
    repository.insert_sweep(session, sweep)
    of_each = {field: getattr(body, field) for field in _OF_EACH_RUN}
    for point, config in plan.points:
        name = f"{body.name} {words(point)}"
        run = RunCreate(name=_cut(name), config=config, cloned_from_id=body.base_run_id, **of_each)
        queued(session, principal, project, cluster, run, sweep_id=sweep.id, sweep_point=point)
    audit.record(session, principal, "sweep.launch", sweep.id, project.id, name=sweep.name, num_runs=len(plan.points))
    return sweep


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
