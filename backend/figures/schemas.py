"""What the figure routes answer."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Read(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class FigureRead(_Read):
    """One chart."""

    name: str
    title: str
    """The quantity and its unit."""
    group: str
    """Heading under which the dashboard shows it."""
    description: str
    """How to read it, in one or two sentences."""
    series: list[str]
    """Names of all series that its traces need."""


class FiguresRead(_Read):
    """Every chart in the order of the dashboard, and the colours they share."""

    figures: list[FigureRead]
    palette: dict[str, str]
    """Colour (#rrggbb) by what it stands for: stages, quantities."""
    run_colors: list[str]
    """Colours of runs in a comparison, in turn."""


class FigureJson(_Read):
    """A Plotly figure. In a template, traces name their series in `meta`; see the binding contract."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
