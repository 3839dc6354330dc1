"""A job that looks at a cluster's machines: whether runs would find what they need there."""

import shlex
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from secrets import token_hex

from backend.auth import audit
from backend.auth.identity import Principal
from backend.clusters import repository
from backend.clusters.code import stored
from backend.clusters.schemas import ClusterCheck, ClusterCheckStarted
from backend.db import Database
from backend.errors import ApiError, not_found
from backend.launcher.connect import Target, connector
from backend.launcher.jobs import GOING, JobState, RefusedError, Submission, UnreachableError
from backend.settings import Settings
from contract.cluster_check import CHECK_VARIABLE, CheckOrder, Finding, report_in

NUM_LOG_LINES = 60
_NEW = "FOREDECK_CHECK_ID"
"""Ray remembers for ten minutes what it could not set up: a check after the mend must not be what was before."""
_COMPARED = ("foredeck", "ray")
"""Packages that must be of the control plane's own version."""


@dataclass(frozen=True, slots=True)
class _Place:
    target: Target
    submission: Submission


def begin(database: Database, settings: Settings, name: str, principal: Principal) -> ClusterCheckStarted:
    """Hands the job to the cluster. Raises ApiError: 404, 422 where Ray refuses it, 503 where it cannot be reached."""
    place = _load(database, name)
    try:
        with connector(settings)(place.target, True) as server:
            server.submit(place.submission)
    except UnreachableError as error:
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, f"Cluster {name}: {error}") from error
    except RefusedError as error:
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from error
    with database.transaction() as session:
        audit.record(session, principal, "cluster.check", name, check_id=place.submission.submission_id)
    return ClusterCheckStarted(id=place.submission.submission_id)


def read(database: Database, settings: Settings, name: str, check_id: str) -> ClusterCheck:
    """What the job has found, or how far it is."""
    target = _load(database, name).target
    try:
        with connector(settings)(target, False) as server:
            job = server.get(check_id)
            lines = server.log_tail(check_id, NUM_LOG_LINES) if job.state not in GOING else []
    except UnreachableError as error:
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, f"Cluster {name}: {error}") from error
    if job.state is JobState.MISSING:
        raise not_found("check", check_id)
    if job.state in GOING:
        state = "pending" if job.state is JobState.PENDING else "running"
        return ClusterCheck(id=check_id, state=state, findings=[], log=[])
    report = report_in(list(lines))
    if report is None:
        log = [*filter(None, [job.message]), *(lines or job.details)]
        return ClusterCheck(id=check_id, state="failed", findings=[], log=log)
    found = [_compared(finding) for finding in report.findings]
    state = "passed" if all(finding.is_ok for finding in found) else "failed"
    return ClusterCheck(id=check_id, state=state, findings=found, log=[])


def _load(database: Database, name: str) -> _Place:
    with database.transaction() as session:
        cluster = repository.get(session, name)
        if cluster is None:
            raise not_found("cluster", name)
        order = CheckOrder(
            api_url=cluster.api_url, storage_dir=cluster.storage_dir, reward_modules=cluster.reward_modules
        )
        check_id = f"check-{name}-{token_hex(4)}"
        submission = Submission(
            submission_id=check_id,
            entrypoint=f"{shlex.quote(cluster.python)} -m workers.check_cluster",
            environment={CHECK_VARIABLE: order.model_dump_json(), _NEW: check_id},
            metadata={"check": name},
            runtime_env=stored(cluster.code).runtime_env([cluster.storage_dir], cluster.data_dirs or []),
        )
        return _Place(Target(cluster.name, cluster.address), submission)


def _compared(finding: Finding) -> Finding:
    """With our own version beside that of the cluster."""
    if finding.name not in _COMPARED or not finding.is_ok:
        return finding
    try:
        own = version(finding.name)
    except PackageNotFoundError:
        return finding
    if finding.detail == own:
        return finding
    detail = f"{finding.detail}, but the control plane has {own}: install the same version on the cluster"
    return finding.model_copy(update={"is_ok": False, "detail": detail})
