"""Charts as templates and bound to a run's data."""

import html
import json
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy.orm import Session

from backend.errors import not_found
from backend.figures.binding import bind, series_names
from backend.figures.palette import PALETTE, SEQUENCE
from backend.figures.schemas import FigureRead, FiguresRead
from backend.telemetry.service import series_data

if TYPE_CHECKING:
    from backend.figures.elements import Chart


@cache
def _charts() -> dict[str, "Chart"]:
    # plotly takes memory, which only a process that shows charts should pay.
    from backend.figures.catalogue import CHARTS  # noqa: PLC0415

    return CHARTS


@cache
def _templates() -> dict[str, dict[str, Any]]:
    return {name: _template(chart) for name, chart in _charts().items()}


def _template(chart: "Chart") -> dict[str, Any]:
    figure = json.loads(chart.figure.to_json())
    layout: dict[str, Any] = figure["layout"] | {"meta": {"title": chart.title, "empty": chart.empty}}
    del layout["template"]  # plotly's own sets colours of paper and text
    return {"data": figure["data"], "layout": layout}


def list_figures() -> FiguresRead:
    """Every chart in the dashboard's order."""
    figures = [
        FigureRead(
            name=name,
            title=chart.title,
            group=chart.group,
            description=chart.description,
            series=series_names(_templates()[name]),
        )
        for name, chart in _charts().items()
    ]
    return FiguresRead(figures=figures, palette=PALETTE, run_colors=SEQUENCE)


def template(name: str) -> dict[str, Any]:
    """The chart's template. Raises ApiError 404."""
    if name not in _templates():
        raise not_found("figure", name)
    return _templates()[name]


def template_json(name: str) -> str:
    """The chart's template as JSON. Raises ApiError 404."""
    return json.dumps(template(name))


def figure(session: Session, run_id: UUID, name: str, max_points: int) -> dict[str, Any]:
    """The chart of a run as Plotly JSON. Raises ApiError 404 for an unknown run or figure."""
    unbound = template(name)
    data = json.loads(series_data(session, run_id, series_names(unbound), 0, max_points))
    series = {columns["name"]: columns for columns in data["series"]}
    return bind(unbound, {str(run_id): series}, SEQUENCE)


def figure_json(session: Session, run_id: UUID, name: str, max_points: int) -> str:
    """The same as text."""
    return json.dumps(figure(session, run_id, name, max_points))


def figure_html(session: Session, run_id: UUID, name: str, max_points: int) -> str:
    """The chart of a run as a page that needs nothing else: plotly.js is in it."""
    bound = figure(session, run_id, name, max_points)
    import plotly.io  # noqa: PLC0415

    title = f"{bound['layout']['meta']['title']} · run {run_id}"
    margin = bound["layout"]["margin"] | {"t": 80}
    bound["layout"] = bound["layout"] | {"title": {"text": html.escape(title)}, "margin": margin}
    page: str = plotly.io.to_html(bound, include_plotlyjs=True, validate=False)
    return page.replace("<head>", f"<head><title>{html.escape(title)}</title>", 1)
