"""HTTP of telemetry: ingest, series, samples, logs and live streams."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from backend.auth.guard import Ingester, Reader, RunReader, Watch
from backend.deps import DatabaseDep, SessionDep
from backend.rate_limit.streams import StreamSlot
from backend.telemetry import service
from backend.telemetry.body import IngestBody, ingest_request_schema
from backend.telemetry.follow import follow_log, follow_notices, while_welcome
from backend.telemetry.hub import hub_of
from backend.telemetry.parquet import MEDIA_TYPE
from backend.telemetry.schemas import AlarmsRead, LogPage, LogQuery, SamplesRead, SeriesData, SeriesRead
from backend.telemetry.sse import EventStream
from contract.telemetry.events import IngestResponse

router = APIRouter(tags=["telemetry"])

MAX_POINTS = 10_000
LineId = Annotated[int, Query(ge=0, lt=2**63)]
LastEventId = Annotated[int | None, Header(ge=0, lt=2**63)]
_SSE: dict[int | str, dict[str, object]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Server-sent events."}
}
_PARQUET: dict[int | str, dict[str, object]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}, "description": "A Parquet file."}
}


@router.post("/ingest", response_model=IngestResponse, openapi_extra=ingest_request_schema())
def ingest(worker: Ingester, body: IngestBody, session: SessionDep) -> IngestResponse:
    """Store events of one run. Each is stored once, however often it is sent; the answer says up to where."""
    return service.ingest(session, body, worker.run_id, worker.attempt)


@router.get("/runs/{run_id}/series", response_model=list[SeriesRead])
def list_series(run_id: UUID, _: RunReader, session: SessionDep) -> list[SeriesRead]:
    """Every series of a run, with what it means."""
    return service.list_series(session, run_id)


@router.get("/runs/{run_id}/series/data", response_model=SeriesData)
def get_series_data(
    run_id: UUID,
    _: RunReader,
    session: SessionDep,
    names: Annotated[str, Query(description="Names of series, separated by commas.", min_length=1)],
    from_step: Annotated[int, Query(ge=0, lt=2**31, description="Answer from the bucket of this step on.")] = 0,
    max_points: Annotated[int, Query(ge=1, le=MAX_POINTS)] = 2000,
) -> Response:
    """Series as bucketed columns. Where several attempts reached a step, the newest counts."""
    body = service.series_data(session, run_id, names.split(","), from_step, max_points)
    return Response(body, media_type="application/json")


@router.get("/runs/{run_id}/samples", response_model=SamplesRead)
def get_samples(
    run_id: UUID,
    _: RunReader,
    session: SessionDep,
    step: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=64)] = 16,
) -> Response:
    """Stored rollouts of a step, with their verification rounds; of the last step that has some by default."""
    return Response(service.samples(session, run_id, step, limit), media_type="application/json")


@router.get("/runs/{run_id}/samples.parquet", response_class=StreamingResponse, responses=_PARQUET)
def get_samples_parquet(run_id: UUID, _: RunReader, database: DatabaseDep) -> StreamingResponse:
    """All stored rollouts as a Parquet file, a row for each verification round; its columns say what they mean."""
    parts = service.samples_parquet(database, run_id)
    headers = {"Content-Disposition": f'attachment; filename="{run_id}-samples.parquet"'}
    return StreamingResponse(parts, media_type=MEDIA_TYPE, headers=headers)


@router.get("/runs/{run_id}/alarms", response_model=AlarmsRead)
def get_alarms(run_id: UUID, _: RunReader, session: SessionDep) -> AlarmsRead:
    """What was wrong with a run and what is now, with what it means and what to do about it."""
    return service.alarms(session, run_id)


@router.get("/runs/{run_id}/logs", response_model=LogPage)
def get_logs(run_id: UUID, _: RunReader, session: SessionDep, query: Annotated[LogQuery, Query()]) -> LogPage:
    """A page of the log in ascending order: the newest lines, or those next to the given line."""
    return service.logs(session, run_id, query)


@router.get("/runs/{run_id}/logs/stream", response_class=StreamingResponse, responses=_SSE)
def stream_logs(
    run_id: UUID,
    _: RunReader,
    request: Request,
    database: DatabaseDep,
    is_welcome: Watch,
    __: StreamSlot,
    after: LineId = 0,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Follow the log from the line after `after`: events `log`, and `end` once the run has ended and all is sent."""
    start = after if last_event_id is None else last_event_id
    with database.transaction() as session:
        service.require_run(session, run_id)
    hub = hub_of(request.app)
    return EventStream(while_welcome(follow_log(hub, run_id, start), hub, is_welcome))


@router.get("/stream", response_class=StreamingResponse, responses=_SSE)
def stream(
    reader: Reader,
    request: Request,
    database: DatabaseDep,
    is_welcome: Watch,
    _: StreamSlot,
    runs: Annotated[str, Query(description="Run ids separated by commas, or `all`.")] = "all",
    after: LineId | None = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """What advances, live: events `run`, `series`, `samples`, `alarm`, `log`.

    `open` comes first, and `resync` when history is gone. With `after`, or the header
    Last-Event-ID, what was missed since that id comes first.
    """
    start = after if last_event_id is None else last_event_id
    with database.transaction() as session:
        run_ids = service.require_runs(session, runs, reader)
    hub = hub_of(request.app)
    return EventStream(while_welcome(follow_notices(hub, run_ids, start, reader.projects("read")), hub, is_welcome))
