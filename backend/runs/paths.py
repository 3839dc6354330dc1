"""Which folders of its cluster a run may read: those that the registration names, and what visible runs have left."""

import posixpath
import re
from collections.abc import Iterator
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth.identity import Principal
from backend.errors import ProblemError
from backend.models import Cluster
from backend.runs import repository
from contract.config import RunConfig
from contract.config.dataset import HubSource, JsonlSource, ParquetSource
from contract.config.policy import CheckpointPolicy
from contract.config.task import DatasetTask

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def path_problems(
    session: Session, config: RunConfig, cluster: Cluster, principal: Principal, pointer: str
) -> list[ProblemError]:
    """The paths of a configuration that the caller's runs may not read on the cluster."""
    found = ((place, path, _refusal(session, path, cluster, principal)) for place, path in _paths(config))
    return [
        ProblemError(pointer=f"{pointer}{place}", detail=detail, value=path) for place, path, detail in found if detail
    ]


def _paths(config: RunConfig) -> Iterator[tuple[str, str]]:
    """(place in the configuration, path) of whatever a worker opens."""
    if isinstance(config.policy, CheckpointPolicy):
        yield "/policy/path", config.policy.path
    if path := getattr(config.drafter, "path", None):
        yield "/drafter/path", path
    if isinstance(config.task, DatasetTask):
        for name in ("train", "validation"):
            source = getattr(config.task, name)
            if isinstance(source, JsonlSource | ParquetSource):
                yield f"/task/{name}/path", source.path
            elif isinstance(source, HubSource) and not _HUB_NAME.fullmatch(source.name):
                yield f"/task/{name}/name", source.name


def _refusal(session: Session, path: str, cluster: Cluster, principal: Principal) -> str | None:
    place, storage = _normal(path), _normal(cluster.storage_dir)
    if run := re.match(rf"{re.escape(storage)}/runs/([0-9a-fA-F-]{{36}})(/|$)", place):
        return None if _is_visible(session, run[1], principal) else "there is no such run of yours"
    if cluster.data_dirs is None:
        return None
    if not path.startswith("/") or ".." in path.split("/"):
        return "must be an absolute path without .."
    is_storage = _is_within(place, storage) or _is_within(storage, place)
    if not is_storage and any(_is_within(place, _normal(folder)) for folder in cluster.data_dirs):
        return None
    return (
        f"cluster {cluster.name} lets runs read from these folders: {', '.join(cluster.data_dirs) or 'none'}. "
        "Let an administrator add the folder to its data_dirs"
    )


def _normal(path: str) -> str:
    return posixpath.normpath(re.sub("^/+", "/", path))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _is_visible(session: Session, run_id: str, principal: Principal) -> bool:
    try:
        project_id = repository.get_project_id(session, UUID(run_id))
    except ValueError:
        return False
    return project_id is not None and principal.allows_in(project_id, "read")
