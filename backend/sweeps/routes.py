"""Sweeps over HTTP."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from backend import etag
from backend.auth.guard import Reader, SweepReader, SweepWriter, Writer
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep, SettingsDep
from backend.etag import IfMatch
from backend.idempotency.route import Idempotent, IdempotentRoute
from backend.refusal import KEEP
from backend.sweeps import service
from backend.sweeps.schemas import BestBy, SweepCreate, SweepPage, SweepRead, SweepUpdate

router = APIRouter(prefix="/sweeps", tags=["sweeps"], route_class=IdempotentRoute)


@router.post("", operation_id="sweeps_create", status_code=HTTPStatus.ACCEPTED, summary="Launch a sweep")
def create_sweep(
    body: Annotated[SweepCreate, KEEP],
    request: Request,
    response: Response,
    writer: Writer,
    session: SessionDep,
    settings: SettingsDep,
    _: Idempotent,
) -> SweepRead:
    sweep = service.launch(session, settings, body, writer)
    response.headers["Location"] = request.url_for("get_sweep", sweep_id=sweep.id).path
    return sweep


@router.get("", operation_id="sweeps_list", summary="List sweeps, newest first")
def list_sweeps(
    reader: Reader,
    session: SessionDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: Annotated[str | None, Query(max_length=63, description="Name of a project")] = None,
    best_by: Annotated[BestBy, Query(description="The figure by which the best run of each is told")] = "reward",
) -> SweepPage:
    return service.list_page(session, reader, limit, cursor, project, best_by)


@router.get("/{sweep_id}", operation_id="sweeps_get", summary="Get a sweep with its runs", response_model=SweepRead)
def get_sweep(sweep_id: UUID, request: Request, _: SweepReader, session: SessionDep) -> Response:
    return etag.answer(request, service.read(session, sweep_id), SweepUpdate)


@router.patch(
    "/{sweep_id}",
    operation_id="sweeps_update",
    summary="Change a sweep's name, labels or notes",
    response_model=SweepRead,
)
def update_sweep(
    sweep_id: UUID,
    body: SweepUpdate,
    request: Request,
    writer: SweepWriter,
    session: SessionDep,
    if_match: IfMatch = None,
) -> Response:
    return etag.answer(request, service.update(session, sweep_id, body, writer, if_match), SweepUpdate)


@router.post(
    "/{sweep_id}/stop",
    operation_id="sweeps_stop",
    status_code=HTTPStatus.ACCEPTED,
    summary="Stop every run of a sweep",
)
def stop_sweep(sweep_id: UUID, writer: SweepWriter, session: SessionDep, settings: SettingsDep) -> SweepRead:
    return service.stop(session, sweep_id, writer, settings.stop_grace_s)
