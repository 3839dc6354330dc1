"""Figures of a run's window of steps with their intervals, alone or against a baseline's."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from backend.gates import means
from backend.gates.quantiles import quantile, quantile_interval
from contract.gates.metrics import Aggregate

_LEVELS: Mapping[str, float] = MappingProxyType({"median": 0.5, "p95": 0.95})
_EXACT: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {"min": min, "max": max, "last": lambda values: values[-1]}
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of a window, in the order of their steps; there is one at least."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    """What each step's ratio is a ratio over, where steps are to be pooled."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its interval. An end that is None is open: nothing can be said."""

    value: float
    low: float | None
    high: float | None
    num_effective: float | None = None
    method: str = ""


def estimate(aggregate: Aggregate, sample: Sample, confidence: float) -> Estimate:
    """Of one run."""
    if aggregate in _EXACT:
        value = _EXACT[aggregate](sample.values)
        return Estimate(value, value, value, method=f"the {aggregate} value itself")
    if len(sample.values) == 1:
        value = sample.values[0]
        return Estimate(value, value, value, method="the only value itself")
    if aggregate in _LEVELS:
        return _of_quantile(_LEVELS[aggregate], sample, confidence)
    return _of_mean(sample, confidence)


def _of_quantile(level: float, sample: Sample, confidence: float) -> Estimate:
    ordered = sorted(sample.values)
    num_effective = means.num_effective(sample.values)
    low, high = quantile_interval(ordered, level, confidence, num_effective)
    return Estimate(quantile(ordered, level), low, high, num_effective, "order statistics of as many effective values")


def _of_mean(sample: Sample, confidence: float) -> Estimate:
    value = means.mean(sample.values, sample.weights)
    spread = means.spread(means.influences(sample.values, sample.weights), confidence)
    return _around(value, spread, _method(sample))


def _around(value: float, spread: means.Spread, method: str) -> Estimate:
    return Estimate(value, value - spread.half_width, value + spread.half_width, spread.num_effective, method)


def _method(sample: Sample) -> str:
    pooled = "pooled over steps, " if sample.weights is not None else ""
    if len(sample.values) < means.MIN_FOR_CORRELATION:
        return f"{pooled}Student's t; too few values to tell their correlation, taken as independent"
    return f"{pooled}Student's t for autocorrelated steps around a trend"


def against(
    aggregate: Aggregate, sample: Sample, baseline: Sample, slope: float, confidence: float
) -> tuple[Estimate, Estimate, bool]:
    """(the run's figure with an interval that holds the uncertainty of slope times the baseline's figure as well, the
    baseline's figure, whether the two were compared step by step).

    Means over the same steps are compared step by step: what both have in common, the trend of learning above all,
    is no uncertainty of their difference. Otherwise the two are taken as independent, and their intervals are put
    together so that unequal sides stay so: x - sqrt((x - x_low)^2 + slope^2 (y_high - y)^2), MOVER (Zou and Donner,
    Statistics in Medicine 27, 2008).
    """
    own, other = estimate(aggregate, sample, confidence), estimate(aggregate, baseline, confidence)
    if aggregate == "mean" and sample.steps == baseline.steps and len(sample.steps) > 1:
        return _step_by_step(sample, baseline, slope, confidence), other, True
    below, above = (other.high, other.low) if slope > 0 else (other.low, other.high)
    down = _distance(own.value, own.low, other.value, below, slope)
    up = _distance(own.value, own.high, other.value, above, slope)
    low, high = None if down is None else own.value - down, None if up is None else own.value + up
    return Estimate(own.value, low, high, own.num_effective, f"{own.method}, of both runs"), other, False


def _step_by_step(sample: Sample, baseline: Sample, slope: float, confidence: float) -> Estimate:
    pairs = zip(
        means.influences(sample.values, sample.weights),
        means.influences(baseline.values, baseline.weights),
        strict=True,
    )
    spread = means.spread([own - slope * other for own, other in pairs], confidence)
    value = means.mean(sample.values, sample.weights)
    return _around(value, spread, f"{_method(sample)}, compared step by step")


def _distance(own: float, own_end: float | None, other: float, other_end: float | None, slope: float) -> float | None:
    if own_end is None or other_end is None:
        return None
    return math.hypot(own - own_end, slope * (other - other_end))
