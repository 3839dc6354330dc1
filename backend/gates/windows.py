"""The values that a gate is about: those of its window of steps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from backend.gates import repository
from backend.gates.estimates import Sample
from backend.telemetry import repository as telemetry
from contract.gates.assertion import Window
from contract.gates.metrics import weight_of
from contract.telemetry.metrics import Metric

MAX_STEPS = 20_000
"""Of a window; of a longer one the last so many count."""
MAX_VALUE = 1e50
"""Beyond it a value counts as not finite: no figure of a run comes near, and squares of smaller ones are numbers."""
_EVERY_STEP = "time/step_s"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found in a window."""

    sample: Sample | None
    """None where there is no finite value."""
    num_non_finite: int


def measure(session: Session, run_id: UUID, metric: Metric, window: Window, is_pooled: bool) -> Measured:
    """The finite values, and how many are not."""
    weight = weight_of(metric) if is_pooled else None
    names = {metric.name, *([weight] if weight else []), *([_EVERY_STEP] if metric.axis == "step" else [])}
    ids = repository.list_series_ids(session, run_id, names)
    if metric.name not in ids:
        return Measured(None, 0)
    first, last = _bounds(session, ids, metric, window)
    wanted = {name: ids[name] for name in (metric.name, weight) if name in ids}
    by_series: dict[int, dict[int, float]] = {series_id: {} for series_id in wanted.values()}
    for series_id, step, value in repository.list_values(session, wanted.values(), first, last):
        by_series[series_id][step] = value
    values = by_series[ids[metric.name]]
    finite = {step: value for step, value in values.items() if _is_finite(value)}
    if not finite:
        return Measured(None, len(values))
    weights = _weights(finite, by_series.get(ids.get(weight or "", 0), {}))
    return Measured(Sample(tuple(finite), tuple(finite.values()), weights), len(values) - len(finite))


def last_step(session: Session, run_id: UUID) -> int:
    """The last step that the run has finished; 0 before the first."""
    ids = repository.list_series_ids(session, run_id, [_EVERY_STEP])
    return telemetry.last_step(session, list(ids.values())) or 0


def _bounds(session: Session, ids: Mapping[str, int], metric: Metric, window: Window) -> tuple[int, int]:
    """First and last step. The last steps are the run's last ones, also for what is measured now and then."""
    counted = [ids[name] for name in (metric.name, _EVERY_STEP) if name in ids]
    reached = telemetry.last_step(session, counted) or 0
    last = reached if window.last is None else min(window.last, reached)
    first = window.first or 0
    if window.num_last is not None:
        first = last - window.num_last + 1
    return max(0, first, last - MAX_STEPS + 1), last


def _weights(values: Mapping[int, float], weights: Mapping[int, float]) -> tuple[float, ...] | None:
    """One for each value; None where that cannot be: then every step counts alike."""
    found = tuple(weights.get(step, math.nan) for step in values)
    is_usable = all(_is_finite(weight) and weight >= 0 for weight in found) and sum(found) > 0
    return found if is_usable else None


def _is_finite(value: float) -> bool:
    return abs(value) <= MAX_VALUE  # false for NaN, too
