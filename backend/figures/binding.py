"""How a figure's template takes up data. The dashboard implements the same contract in TypeScript; both are tested
against contract/figure_binding_cases.json.

A template is Plotly JSON. A trace that shows data carries `meta`; a trace without `meta` is left as it is. In meta:

- `series`: name of the series to show. Always there but with `last_of`.
- `last_of`: names of series in place of one: y is the last finite value of each, x its place in the list from 1. A
  series without one is left out.
- `field`: which column of the series becomes y: `value` (default), `min` or `max`.
- `times_series`: name of another series whose value at the same step is multiplied in; a step that it lacks is left
  out.
- `power`, `factor`, `offset`: y = factor * (column ** power * other) + offset; by default 1, 1 and 0.
- `is_main`: false on bands, envelopes and reference lines, which are dropped when several runs are compared.

Binding sets `x` to the series' steps and `y` to the transformed column; null stays null, and a result that is not
finite becomes null. A trace with no point gets x = y = [] and `visible: false`; any other `visible: true`. Nothing else
in a trace or in the layout changes, so that zoom and legend survive (`layout.uirevision` is constant).

Several runs: the main traces are repeated for each run, in the order trace by trace; `name` becomes
`<run> · <trace name>`, the run's colour from the palette's `runs` (in turn) replaces `line.color` and `marker.color`
where the trace sets them, `legendgroup` becomes the run's label, and `offsetgroup` too on bars.
`layout.meta` = {"empty": "..."} says what to show in words while no trace has a point.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

Columns = Mapping[str, Any]
"""One series as SeriesColumns in JSON."""
RunSeries = Mapping[str, Columns]
"""Series of one run by name."""
Json = dict[str, Any]


def bind(template: Json, runs: Mapping[str, RunSeries], run_colors: Sequence[str]) -> Json:
    """The figure of one run or of several (by label) from a template; neither is changed."""
    if len(runs) == 1:
        (series,) = runs.values()
        return {**template, "data": [_bound(trace, series) for trace in template["data"]]}
    colors = {label: run_colors[index % len(run_colors)] for index, label in enumerate(runs)}
    data = []
    for trace in template["data"]:
        if "meta" not in trace:
            data.append(trace)
        elif trace["meta"].get("is_main", True):
            data += [_bound(_of_run(trace, label, colors[label]), series) for label, series in runs.items()]
    return {**template, "data": data}


def series_names(template: Json) -> list[str]:
    """Names of all series that a template needs, each once."""
    metas = [trace["meta"] for trace in template["data"] if "meta" in trace]
    single = [[meta[key] for key in ("series", "times_series") if key in meta] for meta in metas]
    lists = [meta.get("last_of", []) for meta in metas]
    return list(dict.fromkeys(name for pair in zip(single, lists, strict=True) for names in pair for name in names))


def _of_run(trace: Json, label: str, color: str) -> Json:
    colored = {key: {**trace[key], "color": color} for key in ("line", "marker") if "color" in trace.get(key, {})}
    group = {"legendgroup": label} | ({"offsetgroup": label} if trace.get("type") == "bar" else {})
    return {**trace, **colored, **group, "name": f"{label} · {trace['name']}"}


def _bound(trace: Json, series: RunSeries) -> Json:
    if "meta" not in trace:
        return trace
    x, y = _points(trace["meta"], series)
    return {**trace, "x": x, "y": y, "visible": bool(x)}


def _points(meta: Json, series: RunSeries) -> tuple[list[int], list[float | None]]:
    if "last_of" in meta:
        return _last_points(meta, series)
    columns = series.get(meta["series"])
    if columns is None:
        return [], []
    values = zip(columns["step"], columns[meta.get("field", "value")], strict=True)
    if "times_series" not in meta:
        points = [(step, _transformed(meta, value, 1.0)) for step, value in values]
    else:
        other = series.get(meta["times_series"], {"step": [], "value": []})
        others = dict(zip(other["step"], other["value"], strict=True))
        points = [(step, _transformed(meta, value, others[step])) for step, value in values if step in others]
    return [step for step, _ in points], [y for _, y in points]


def _last_points(meta: Json, series: RunSeries) -> tuple[list[int], list[float | None]]:
    lasts = [
        (place, next((value for value in reversed(series[name]["value"]) if value is not None), None))
        for place, name in enumerate(meta["last_of"], 1)
        if name in series
    ]
    points = [(place, _transformed(meta, value, 1.0)) for place, value in lasts if value is not None]
    return [place for place, _ in points], [y for _, y in points]


def _transformed(meta: Json, value: float | None, other: float | None) -> float | None:
    if value is None or other is None:
        return None
    power = meta.get("power", 1)
    try:
        y = meta.get("factor", 1) * ((value if power == 1 else math.pow(value, power)) * other) + meta.get("offset", 0)
    except (ValueError, OverflowError):  # a power that is not real, or too large
        return None
    return float(y) if math.isfinite(y) else None
