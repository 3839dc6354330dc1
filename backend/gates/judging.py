"""From figures to a verdict. Knows nothing of the database."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from backend.gates import words
from backend.gates.estimates import Estimate, Sample, against, estimate
from backend.gates.schemas import BaselineFigure, Gate, GateResult, Verdict
from backend.gates.windows import Measured
from backend.telemetry.alarms import Episode
from contract.gates.assertion import AlarmFree, Comparison, Operator, Window
from contract.telemetry.metrics import Metric


@dataclass(frozen=True, slots=True)
class Against:
    """The run to compare with, and what was found there."""

    run_id: UUID
    run_name: str
    sample: Sample


def judge_comparison(
    gate: Gate, assertion: Comparison, metric: Metric, measured: Measured, baseline: Against | str | None
) -> GateResult:
    """The verdict on a comparison.

    Args:
        baseline: a text says why there is none; None where none is needed.
    """
    known: dict[str, Any] = {
        "metric": metric.name,
        "unit": metric.unit,
        "aggregate": assertion.aggregate,
        "operator": assertion.operator,
        "confidence": gate.confidence,
        "num_non_finite": measured.num_non_finite,
        "num_values": measured.num_non_finite,
    }
    sample = measured.sample
    if sample is not None:
        known |= _span(sample) | {"num_values": len(sample.values) + measured.num_non_finite}
    if measured.num_non_finite:
        return _result(gate, "failed", False, words.not_finite(known["num_non_finite"], known["num_values"]), **known)
    if sample is None:
        return _result(gate, "no_data", False, words.no_data(metric.name, assertion.window), **known)
    if isinstance(baseline, str):
        known["estimate"] = estimate(assertion.aggregate, sample, gate.confidence).value
        is_passed = gate.on_no_baseline == "pass"
        return _result(gate, "no_baseline", is_passed, words.no_baseline(baseline, is_passed), **known)
    return _decided(gate, assertion, sample, baseline, known)


def _decided(
    gate: Gate, assertion: Comparison, sample: Sample, baseline: Against | None, known: dict[str, Any]
) -> GateResult:
    limit = assertion.limit.constant
    if baseline is None:
        figure = estimate(assertion.aggregate, sample, gate.confidence)
    else:
        slope = assertion.limit.slope
        figure, other, is_paired = against(assertion.aggregate, sample, baseline.sample, slope, gate.confidence)
        limit += slope * other.value
        known["baseline"] = BaselineFigure(
            run_id=baseline.run_id,
            run_name=baseline.run_name,
            estimate=other.value,
            num_values=len(baseline.sample.values),
            is_paired=is_paired,
            **_span(baseline.sample),
        )
    verdict = verdict_of(assertion.operator, figure, limit)
    is_passed = verdict == "passed" or (verdict == "undecided" and _when_undecided(gate, assertion, figure, limit))
    known |= {
        "limit": limit,
        "estimate": figure.value,
        "low": figure.low,
        "high": figure.high,
        "num_effective": figure.num_effective,
        "method": figure.method,
    }
    reason = words.decided(verdict, is_passed, figure, assertion.operator, limit, known["unit"], gate.confidence)
    return _result(gate, verdict, is_passed, reason, **known)


def verdict_of(operator: Operator, figure: Estimate, limit: float) -> Verdict:
    """passed where the whole interval keeps the limit, failed where the whole interval breaks it."""
    worst, best = (figure.low, figure.high) if operator in (">=", ">") else (figure.high, figure.low)
    if worst is not None and holds(operator, worst, limit):
        return "passed"
    if best is not None and not holds(operator, best, limit):
        return "failed"
    return "undecided"


def holds(operator: Operator, value: float, limit: float) -> bool:
    match operator:
        case ">=":
            return value >= limit
        case "<=":
            return value <= limit
        case ">":
            return value > limit
        case "<":
            return value < limit


def _when_undecided(gate: Gate, assertion: Comparison, figure: Estimate, limit: float) -> bool:
    if gate.on_undecided == "estimate":
        return holds(assertion.operator, figure.value, limit)
    return gate.on_undecided == "pass"


def judge_alarms(gate: Gate, assertion: AlarmFree, told: list[Episode]) -> GateResult:
    """The verdict on alarms: each counts that was raised and not undone by a later attempt."""
    found = [episode for episode in told if _counts(episode, assertion)]
    if not found:
        return _result(gate, "passed", True, words.no_alarm(assertion.alarm, assertion.window))
    steps = {"first_step": found[0].step, "last_step": found[-1].step, "num_values": len(found)}
    return _result(gate, "failed", False, words.alarms([(each.name, each.step) for each in found]), **steps)


def _counts(episode: Episode, assertion: AlarmFree) -> bool:
    is_it = assertion.alarm is None or episode.name == assertion.alarm
    return is_it and episode.ending != "undone" and _is_within(episode, assertion.window)


def _is_within(episode: Episode, window: Window) -> bool:
    """Whether it was active in some of the window's steps, which are given by their numbers."""
    is_after = window.last is not None and episode.step > window.last
    is_before = window.first is not None and episode.ended_step is not None and episode.ended_step < window.first
    return not is_after and not is_before


def _span(sample: Sample) -> dict[str, int]:
    return {"first_step": sample.steps[0], "last_step": sample.steps[-1]}


def _result(gate: Gate, verdict: Verdict, is_passed: bool, reason: str, **known: Any) -> GateResult:
    return GateResult(
        name=gate.title, assertion=gate.assertion, verdict=verdict, is_passed=is_passed, reason=reason, **known
    )
