"""Rules of clusters."""

from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from sqlalchemy.orm import Session

from backend import etag, queue
from backend.auth import audit
from backend.auth.identity import Principal
from backend.clusters import repository
from backend.clusters.code import stored, wrong_python
from backend.clusters.schemas import (
    ClusterCreate,
    ClusterRead,
    ClusterShare,
    ClusterShares,
    ClusterUpdate,
    Reachability,
    Resource,
)
from backend.db import Database
from backend.errors import ApiError, ProblemError, conflict, not_found
from backend.launcher.connect import Target, connector
from backend.launcher.jobs import NotStartedError, StartingError, UnreachableError
from backend.models import Cluster
from backend.settings import Settings

LOCAL = "local"
ASK_TIMEOUT_S = 2.0
MAX_ASKED_AT_ONCE = 8


def register(session: Session, settings: Settings, body: ClusterCreate, principal: Principal) -> ClusterRead:
    """Asks the cluster whether it answers, too, and first, while the transaction holds nothing that others wait for. It
    may come up later, so that nothing depends on it."""
    reachability, resources = _ask(Target(body.name, body.address), settings)
    cluster = _insert(session, body, principal)
    return cluster.model_copy(update={"reachability": reachability, "resources": resources})


def _insert(session: Session, body: ClusterCreate, principal: Principal) -> ClusterRead:
    cluster = repository.insert_cluster(session, **body.model_dump())
    if cluster is None:
        error = ProblemError(pointer="/name", detail="there is a cluster of this name", value=body.name)
        raise ApiError(HTTPStatus.CONFLICT, f"There is a cluster {body.name} already.", errors=[error])
    audit.record(session, principal, "cluster.register", body.name, address=body.address)
    return _read(session, cluster)


def update(
    session: Session, name: str, body: ClusterUpdate, principal: Principal, if_match: str | None = None
) -> ClusterRead:
    """Corrects a cluster. Raises ApiError: 404, 409 for the one that follows this service's environment, 412 when
    it was edited since the caller loaded what they have the tag of."""
    cluster = _get(session, name)
    if name == LOCAL:
        raise conflict(f"Cluster {LOCAL} follows the environment of this service: see RAY_ADDRESS and its neighbours.")
    changes = body.changes()
    code = changes.get("code") or cluster.code
    if problem := wrong_python(changes.get("python", cluster.python), code):
        error = ProblemError(pointer="/python", detail=problem, value=changes.get("python", cluster.python))
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, problem, errors=[error])
    queue.wake_waiting(session, cluster.id)  # there may be more places; before the cluster's row, as whoever takes one
    session.refresh(cluster, with_for_update=True)
    etag.require(if_match, _read(session, cluster), ClusterUpdate)
    for field, value in changes.items():
        setattr(cluster, field, value)
    audit.record(session, principal, "cluster.update", name, **changes)
    return _read(session, cluster)


def _get(session: Session, name: str) -> Cluster:
    cluster = repository.get(session, name)
    if cluster is None:
        raise not_found("cluster", name)
    return cluster


def remove(session: Session, name: str, principal: Principal) -> None:
    """Only a cluster that no run has used: runs keep the name of theirs."""
    cluster = _get(session, name)
    num_runs = repository.count_runs(session, cluster)[2]
    if num_runs:
        raise conflict(f"Cluster {name} stays: {num_runs} runs belong to it.")
    if name == LOCAL:
        raise conflict(f"Cluster {LOCAL} stays: it is the default of new runs.")
    session.delete(cluster)
    audit.record(session, principal, "cluster.remove", name)


def list_shares(session: Session, name: str, principal: Principal) -> ClusterShares:
    cluster, visible = _get(session, name), principal.projects("read")
    fields = ("name", "num_live_runs", "num_queued_runs")
    users, projects = (
        [ClusterShare(**dict(zip(fields, row, strict=True))) for row in rows]
        for rows in (
            repository.list_shares_of_users(session, cluster, visible),
            repository.list_shares_of_projects(session, cluster, visible),
        )
    )
    return ClusterShares(users=users, projects=projects)


def list_with_state(database: Database, settings: Settings) -> list[ClusterRead]:
    """All clusters, each asked whether it answers; asked side by side, outside any transaction."""
    with database.transaction() as session:
        clusters = [_read(session, cluster) for cluster in repository.list_all(session)]
    with ThreadPoolExecutor(MAX_ASKED_AT_ONCE) as pool:
        return list(pool.map(lambda cluster: _with_state(cluster, settings), clusters))


def read_with_state(database: Database, settings: Settings, name: str) -> ClusterRead:
    with database.transaction() as session:
        read = _read(session, _get(session, name))
    return _with_state(read, settings)


def _with_state(cluster: ClusterRead, settings: Settings) -> ClusterRead:
    reachability, resources = _ask(Target(cluster.name, cluster.address), settings)
    return cluster.model_copy(update={"reachability": reachability, "resources": resources})


def _ask(target: Target, settings: Settings) -> tuple[Reachability, dict[str, Resource] | None]:
    try:
        with connector(settings, ASK_TIMEOUT_S)(target, False) as server:
            version = server.version()
            resources = {name: Resource(used=used, total=total) for name, (used, total) in server.resources().items()}
    except StartingError as error:
        return Reachability(state="starting", detail=str(error)), None
    except NotStartedError as error:
        return Reachability(state="not_started", detail=str(error)), None
    except UnreachableError as error:
        return Reachability(state="unreachable", detail=str(error)), None
    return Reachability(state="reachable", detail=f"Ray {version} answers.", ray_version=version), resources or None


def _read(session: Session, cluster: Cluster) -> ClusterRead:
    num_live, num_queued, _ = repository.count_runs(session, cluster)
    return ClusterRead(
        id=cluster.id,
        name=cluster.name,
        address=cluster.address,
        python=cluster.python,
        code=stored(cluster.code),
        reward_modules=cluster.reward_modules,
        data_dirs=cluster.data_dirs,
        storage_dir=cluster.storage_dir,
        api_url=cluster.api_url,
        max_concurrent_runs=cluster.max_concurrent_runs,
        max_concurrent_runs_per_user=cluster.max_concurrent_runs_per_user,
        max_concurrent_runs_per_project=cluster.max_concurrent_runs_per_project,
        is_embedded=cluster.address is None,
        num_live_runs=num_live,
        num_queued_runs=num_queued,
        created_at=cluster.created_at,
        reachability=None,
        resources=None,
    )


def ensure_local(session: Session, settings: Settings) -> None:
    """The cluster `local` exists and follows this installation's settings, which may have changed since."""
    values = {
        "address": settings.ray_address,
        "python": settings.cluster_python,
        "reward_modules": list(settings.cluster_reward_modules),
        "data_dirs": settings.local_data_dirs,
        "storage_dir": str(settings.local_storage_dir),
        "api_url": settings.local_api_url,
        "max_concurrent_runs": settings.max_concurrent_runs,
        "max_concurrent_runs_per_user": settings.max_concurrent_runs_per_user,
        "max_concurrent_runs_per_project": settings.max_concurrent_runs_per_project,
    }
    if repository.insert_cluster(session, name=LOCAL, **values) is None:
        cluster = repository.get(session, LOCAL)
        for field, value in values.items():
            setattr(cluster, field, value)
