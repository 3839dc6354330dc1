"""The pieces that charts are made of. Nothing sets a colour of text or paper: a chart sits on light and on dark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import plotly.graph_objects as go

from backend.figures.palette import PALETTE, faint

Trace: TypeAlias = go.Scatter | go.Bar
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"}
SMALL = {"hoverformat": ".3~g", "rangemode": "tozero", "exponentformat": "power"}
"""A y axis for numbers far below 1."""
_FAINT_LINE = "rgba(128,128,128,0.25)"


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its words and its template."""

    name: str
    title: str
    group: str
    description: str
    empty: str
    """What will appear and when, shown while there are no points."""
    figure: go.Figure


def line(series: str, name: str, color: str, **more: Any) -> go.Scatter:
    """A line with small markers, so that a single point is seen too. `meta` in `more` adds to the binding."""
    meta = {"series": series, "is_main": True} | more.pop("meta", {})
    style = {"color": color, "width": 1.75} | more.pop("line", {})
    marker = {"color": color, "size": 3.5} | more.pop("marker", {})
    return go.Scatter(name=name, mode=more.pop("mode", "lines+markers"), line=style, marker=marker, meta=meta, **more)


def band(low: dict[str, Any], high: dict[str, Any], color: str, legendgroup: str | None = None) -> list[go.Scatter]:
    """A shaded area between two bindings."""
    edge = {
        "mode": "lines",
        "line": {"width": 0, "color": color},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": legendgroup,
    }
    return [
        go.Scatter(meta=low | {"is_main": False}, **edge),
        go.Scatter(meta=high | {"is_main": False}, fill="tonexty", fillcolor=faint(color), **edge),
    ]


def line_with_envelope(series: str, name: str, color: str, **more: Any) -> list[go.Scatter]:
    """A line and, behind it, the extremes of its buckets: a spike stays in sight however long the run."""
    factor = {key: value for key, value in more.get("meta", {}).items() if key in {"factor", "offset"}}
    low = {"series": series, "field": "min"} | factor
    high = {"series": series, "field": "max"} | factor
    return [*band(low, high, color, name), line(series, name, color, legendgroup=name, **more)]


def reference(series: str, name: str, **meta: Any) -> go.Scatter:
    """A dashed neutral line to compare with."""
    style = {"dash": "dash", "width": 1.25}
    more = {"is_main": False} | meta
    return line(series, name, PALETTE["reference"], mode="lines", line=style, meta=more)


def told(series: str, name: str, axis: str) -> go.Scatter:
    """A number that is only told where the pointer is, on an axis of `unseen_axis`."""
    more = {"yaxis": axis, "opacity": 0, "showlegend": False, "meta": {"is_main": False}}
    return line(series, name, PALETTE["reference"], mode="lines", **more)


def unseen_axis(hoverformat: str) -> dict[str, Any]:
    """A y axis for numbers that are told and not drawn."""
    return {"overlaying": "y", "visible": False, "hoverformat": hoverformat}


def chart_figure(traces: Sequence[Trace], y_title: str, x_title: str = "step", **layout: Any) -> go.Figure:
    """A figure whose zoom and legend survive new data; `yaxis` in `layout` adds to the y axis."""
    axis = {"gridcolor": _FAINT_LINE, "zerolinecolor": _FAINT_LINE, "linecolor": _FAINT_LINE, "automargin": True}
    common = {
        "xaxis": axis | {"title": {"text": x_title}, "showgrid": False, "rangemode": "nonnegative"},
        "yaxis": axis | {"title": {"text": y_title}, "hoverformat": ".3~r"} | layout.pop("yaxis", {}),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "x unified",
        "uirevision": "keep",
        "legend": LEGEND,
        "margin": {"l": 56, "r": 16, "t": 32, "b": 40},
    }
    return go.Figure(data=list(traces), layout=common | layout)


def right_axis(title: str, **more: Any) -> dict[str, Any]:
    """A second y axis on the right, without a grid of its own."""
    return {
        "title": {"text": title},
        "overlaying": "y",
        "side": "right",
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "hoverformat": ".3~r",
        "tickmode": "auto",  # by default ticks sit at the other axis' grid lines, on odd values
        "nticks": 5,
    } | more


def horizontal(y: float) -> dict[str, Any]:
    """A thin dashed line across the plot, as a layout shape."""
    style = {"color": PALETTE["reference"], "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": style, "layer": "below"}
