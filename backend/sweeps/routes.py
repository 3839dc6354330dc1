"""Sweeps over HTTP."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request, Response

from backend.auth.guard import Reader, SweepReader, SweepWriter, Writer
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep, SettingsDep
from backend.idempotency.route import Idempotent, IdempotentRoute
from backend.refusal import KEEP
from backend.sweeps import service
from backend.sweeps.schemas import SweepCreate, SweepPage, SweepRead

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
def list_sweeps(reader: Reader, session: SessionDep, limit: Limit = 50, cursor: Cursor = None) -> SweepPage:
    return service.list_page(session, reader, limit, cursor)


@router.get("/{sweep_id}", operation_id="sweeps_get", summary="Get a sweep with its runs")
def get_sweep(sweep_id: UUID, _: SweepReader, session: SessionDep) -> SweepRead:
    return service.read(session, sweep_id)


@router.post(
    "/{sweep_id}/stop",
    operation_id="sweeps_stop",
    status_code=HTTPStatus.ACCEPTED,
    summary="Stop every run of a sweep",
)
def stop_sweep(sweep_id: UUID, writer: SweepWriter, session: SessionDep, settings: SettingsDep) -> SweepRead:
    return service.stop(session, sweep_id, writer, settings.stop_grace_s)
