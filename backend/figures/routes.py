"""HTTP of figures."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from backend.auth.guard import Reader, RunReader
from backend.deps import SessionDep
from backend.figures import service
from backend.figures.schemas import FigureJson, FiguresRead

router = APIRouter(tags=["figures"])

PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'none'"
)
"""plotly.js in the page may run, without the origin's cookies and without speaking to anybody."""
MaxPoints = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/figures", response_model=FiguresRead)
def list_figures(_: Reader) -> FiguresRead:
    """Every chart of the dashboard and the colours they share."""
    return service.list_figures()


@router.get("/figures/{name}", response_model=FigureJson)
def get_template(name: str, _: Reader) -> Response:
    """A chart's Plotly template, without data."""
    return Response(service.template_json(name), media_type="application/json")


@router.get("/runs/{run_id}/figures/{name}.html", response_class=HTMLResponse)
def get_figure_html(
    run_id: UUID, name: str, _: RunReader, session: SessionDep, max_points: MaxPoints = 2000
) -> HTMLResponse:
    """A chart of a run as a page that stands alone."""
    page = service.figure_html(session, run_id, name, max_points)
    return HTMLResponse(page, headers={"Content-Security-Policy": PAGE_POLICY})


@router.get("/runs/{run_id}/figures/{name}", response_model=FigureJson)
def get_figure(run_id: UUID, name: str, _: RunReader, session: SessionDep, max_points: MaxPoints = 2000) -> Response:
    """A chart of a run as Plotly JSON."""
    return Response(service.figure_json(session, run_id, name, max_points), media_type="application/json")
