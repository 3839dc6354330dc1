"""Clusters over HTTP."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from backend import etag
from backend.auth.guard import Admin, Reader
from backend.clusters import checks, service
from backend.clusters.schemas import (
    CheckId,
    ClusterCheck,
    ClusterCheckStarted,
    ClusterCreate,
    ClusterRead,
    ClusterShares,
    ClusterUpdate,
)
from backend.deps import DatabaseDep, SessionDep, SettingsDep
from backend.etag import IfMatch
from backend.idempotency.route import Idempotent, IdempotentRoute

router = APIRouter(prefix="/clusters", tags=["clusters"], route_class=IdempotentRoute)


@router.get("", operation_id="clusters_list", summary="List clusters and ask each whether it answers")
def list_clusters(_: Reader, database: DatabaseDep, settings: SettingsDep) -> list[ClusterRead]:
    return service.list_with_state(database, settings)


@router.post("", operation_id="clusters_create", status_code=HTTPStatus.CREATED, summary="Register a cluster")
def create_cluster(
    body: ClusterCreate,
    request: Request,
    response: Response,
    admin: Admin,
    session: SessionDep,
    settings: SettingsDep,
    _: Idempotent,
) -> ClusterRead:
    cluster = service.register(session, settings, body, admin)
    response.headers["Location"] = request.url_for("get_cluster", name=cluster.name).path
    return cluster


@router.get(
    "/{name}",
    operation_id="clusters_get",
    summary="Get a cluster and ask it whether it answers",
    response_model=ClusterRead,
)
def get_cluster(name: str, request: Request, _: Reader, database: DatabaseDep, settings: SettingsDep) -> Response:
    return etag.answer(request, service.read_with_state(database, settings, name), ClusterUpdate)


@router.patch("/{name}", operation_id="clusters_update", summary="Correct a cluster", response_model=ClusterRead)
def update_cluster(
    name: str, body: ClusterUpdate, request: Request, admin: Admin, session: SessionDep, if_match: IfMatch = None
) -> Response:
    return etag.answer(request, service.update(session, name, body, admin, if_match), ClusterUpdate)


@router.get(
    "/{name}/shares", operation_id="clusters_shares", summary="Which users and projects use a cluster, and wait for it"
)
def get_cluster_shares(name: str, reader: Reader, session: SessionDep) -> ClusterShares:
    return service.list_shares(session, name, reader)


@router.post(
    "/{name}/checks",
    operation_id="clusters_check",
    status_code=HTTPStatus.ACCEPTED,
    summary="Have a job look at the cluster's machines",
)
def check_cluster(
    name: str, request: Request, response: Response, admin: Admin, database: DatabaseDep, settings: SettingsDep
) -> ClusterCheckStarted:
    started = checks.begin(database, settings, name, admin)
    response.headers["Location"] = request.url_for("get_cluster_check", name=name, check_id=started.id).path
    return started


@router.get("/{name}/checks/{check_id}", operation_id="clusters_check_get", summary="What such a job has found")
def get_cluster_check(
    name: str, check_id: CheckId, _: Reader, database: DatabaseDep, settings: SettingsDep
) -> ClusterCheck:
    return checks.read(database, settings, name, check_id)


@router.delete("/{name}", operation_id="clusters_delete", status_code=HTTPStatus.NO_CONTENT, summary="Remove a cluster")
def delete_cluster(name: str, admin: Admin, session: SessionDep) -> None:
    service.remove(session, name, admin)
