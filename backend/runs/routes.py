"""Runs over HTTP."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from backend import etag
from backend.auth.guard import Reader, RunReader, RunWriter, Writer
from backend.cursor import Cursor, Limit
from backend.deps import DatabaseDep, SessionDep, SettingsDep
from backend.etag import IfMatch
from backend.idempotency.route import Idempotent, IdempotentRoute
from backend.refusal import KEEP
from backend.runs import service
from backend.runs.schemas import RunClone, RunCreate, RunPage, RunRead, RunUpdate
from backend.runs.wait import wait_until_ended

router = APIRouter(prefix="/runs", tags=["runs"], route_class=IdempotentRoute)

MAX_WAIT_S = 300.0


@router.post("", operation_id="runs_create", status_code=HTTPStatus.ACCEPTED, summary="Launch a run")
def create_run(
    body: Annotated[RunCreate, KEEP],
    request: Request,
    response: Response,
    writer: Writer,
    session: SessionDep,
    settings: SettingsDep,
    _: Idempotent,
) -> RunRead:
    return _accepted(request, response, service.launch(session, settings, body, writer))


@router.get("", operation_id="runs_list", summary="List runs, newest first")
def list_runs(
    reader: Reader,
    session: SessionDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    status: Annotated[str | None, Query(description="Statuses, comma-separated", examples=["running,queued"])] = None,
    search: Annotated[str | None, Query(max_length=200, description="Part of the name or the notes, or an id")] = None,
    label: Annotated[list[str] | None, Query(description="key:value; several must all match")] = None,
    project: Annotated[str | None, Query(max_length=63, description="Name of a project")] = None,
) -> RunPage:
    return service.list_page(session, reader, limit, cursor, status, search, label or [], project)


@router.get("/{run_id}", operation_id="runs_get", summary="Get a run", response_model=RunRead)
def get_run(run_id: UUID, request: Request, _: RunReader, session: SessionDep) -> Response:
    return etag.answer(request, service.read(session, run_id), RunUpdate)


@router.patch(
    "/{run_id}",
    operation_id="runs_update",
    summary="Change a run's name, labels, notes or priority",
    response_model=RunRead,
)
def update_run(
    run_id: UUID,
    body: RunUpdate,
    request: Request,
    writer: RunWriter,
    session: SessionDep,
    if_match: IfMatch = None,
) -> Response:
    return etag.answer(request, service.update(session, run_id, body, writer, if_match), RunUpdate)


@router.post("/{run_id}/stop", operation_id="runs_stop", status_code=HTTPStatus.ACCEPTED, summary="Stop a run")
def stop_run(run_id: UUID, writer: RunWriter, session: SessionDep, settings: SettingsDep) -> RunRead:
    return service.stop(session, run_id, writer, settings.stop_grace_s)


@router.post(
    "/{run_id}/clone", operation_id="runs_clone", status_code=HTTPStatus.ACCEPTED, summary="Launch a run like another"
)
def clone_run(
    run_id: UUID,
    body: RunClone,
    request: Request,
    response: Response,
    writer: RunReader,
    session: SessionDep,
    settings: SettingsDep,
    _: Idempotent,
) -> RunRead:
    return _accepted(request, response, service.clone(session, settings, run_id, body, writer))


@router.get("/{run_id}/wait", operation_id="runs_wait", summary="Wait until a run has ended")
async def wait_for_run(
    run_id: UUID,
    request: Request,
    _: RunReader,
    database: DatabaseDep,
    timeout_s: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Longest wait")] = 30,
) -> RunRead:
    await wait_until_ended(request, run_id, timeout_s)
    return await run_in_threadpool(service.read_at_once, database, run_id)


@router.get(
    "/{run_id}/config.yaml",
    operation_id="runs_get_config_yaml",
    summary="A run's configuration as a file",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/yaml": {"schema": {}}}}},
)
def get_config_yaml(run_id: UUID, _: RunReader, session: SessionDep) -> PlainTextResponse:
    return PlainTextResponse(service.config_yaml(session, run_id), media_type="text/yaml")


def _accepted(request: Request, response: Response, run: RunRead) -> RunRead:
    response.headers["Location"] = request.url_for("get_run", run_id=run.id).path
    return run
