"""Files over HTTP, sent as they are read."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from backend.auth.guard import Reader, RunReader
from backend.deps import DatabaseDep
from backend.export import csv_file, series_file, service
from backend.export.repository import PointRow
from backend.telemetry import parquet

router = APIRouter(tags=["export"])

Names = Annotated[str | None, Query(description="Names of series, separated by commas; all without it.", min_length=1)]
Attempts = Annotated[
    Literal["newest", "all"], Query(description="Where several attempts reached a step: the newest, or each of them.")
]
Pages = Iterator[list[PointRow]]
_CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "A CSV file."}
}
_PARQUET: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {parquet.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        "description": "A Parquet file.",
    }
}


def _of_run(
    run_id: UUID, _: RunReader, database: DatabaseDep, names: Names = None, attempts: Attempts = "newest"
) -> Pages:
    return service.point_pages(database, [run_id], service.metric_names(names), attempts == "newest")


def _of_runs(
    reader: Reader,
    database: DatabaseDep,
    runs: Annotated[str | None, Query(description="Run ids separated by commas, or `all`.", min_length=1)] = None,
    label: Annotated[list[str] | None, Query(description="key:value; several must all match")] = None,
    project: Annotated[str | None, Query(description="Name of a project", max_length=120)] = None,
    status: Annotated[str | None, Query(description="Statuses, comma-separated", examples=["running,queued"])] = None,
    search: Annotated[str | None, Query(max_length=200, description="Part of the name or the notes, or an id")] = None,
    names: Names = None,
    attempts: Attempts = "newest",
) -> Pages:
    chosen = service.metric_names(names)
    with database.transaction() as session:
        run_ids = service.chosen_runs(session, reader, runs, label or [], project, status, search)
    return service.point_pages(database, run_ids, chosen, attempts == "newest")


PagesOfRun = Annotated[Pages, Depends(_of_run)]
PagesOfRuns = Annotated[Pages, Depends(_of_runs)]


@router.get(
    "/runs/{run_id}/series.csv",
    operation_id="runs_series_csv",
    summary="A run's series as a CSV file, a line for each point",
    response_class=StreamingResponse,
    responses=_CSV,
)
def get_series_csv(run_id: UUID, pages: PagesOfRun) -> StreamingResponse:
    return _file(series_file.as_csv(pages), csv_file.MEDIA_TYPE, f"{run_id}-series.csv")


@router.get(
    "/runs/{run_id}/series.parquet",
    operation_id="runs_series_parquet",
    summary="A run's series as a Parquet file, a row for each point",
    response_class=StreamingResponse,
    responses=_PARQUET,
)
def get_series_parquet(run_id: UUID, pages: PagesOfRun) -> StreamingResponse:
    return _file(series_file.as_parquet(pages), parquet.MEDIA_TYPE, f"{run_id}-series.parquet")


@router.get(
    "/runs/{run_id}/samples.csv",
    operation_id="runs_samples_csv",
    summary="A run's stored rollouts as a CSV file, a line for each response",
    response_class=StreamingResponse,
    responses=_CSV,
)
def get_samples_csv(run_id: UUID, _: RunReader, database: DatabaseDep) -> StreamingResponse:
    return _file(service.samples_csv(database, run_id), csv_file.MEDIA_TYPE, f"{run_id}-samples.csv")


@router.get(
    "/export/series.csv",
    operation_id="export_series_csv",
    summary="Series of several runs as a CSV file",
    response_class=StreamingResponse,
    responses=_CSV,
)
def export_series_csv(pages: PagesOfRuns) -> StreamingResponse:
    return _file(series_file.as_csv(pages), csv_file.MEDIA_TYPE, "series.csv")


@router.get(
    "/export/series.parquet",
    operation_id="export_series_parquet",
    summary="Series of several runs as a Parquet file",
    response_class=StreamingResponse,
    responses=_PARQUET,
)
def export_series_parquet(pages: PagesOfRuns) -> StreamingResponse:
    return _file(series_file.as_parquet(pages), parquet.MEDIA_TYPE, "series.parquet")


def _file(parts: Iterator[bytes], media_type: str, name: str) -> StreamingResponse:
    return StreamingResponse(
        parts, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
