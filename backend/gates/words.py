"""What came of a gate, in a sentence."""

from collections.abc import Sequence

from backend.gates.estimates import Estimate
from backend.gates.schemas import Verdict
from contract.gates.assertion import Window

_PLAIN_UNIT = "1"


def number(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}"


def interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        if low is not None:
            return f"{number(low)} and more"
        return f"{number(high)} and less" if high is not None else "open on both sides"
    return f"{number(low)} to {number(high)}"


def decided(
    verdict: Verdict, is_passed: bool, figure: Estimate, operator: str, limit: float, unit: str, confidence: float
) -> str:
    shown = number(figure.value) if unit == _PLAIN_UNIT else f"{number(figure.value)} {unit}"
    told = (
        shown
        if figure.low == figure.high
        else f"{shown} ({100 * confidence:.4g} % interval {interval(figure.low, figure.high)})"
    )
    if verdict == "undecided":
        counts = "passes" if is_passed else "fails"
        return f"{told} is undecided, for the interval holds the limit {number(limit)}; here that {counts}."
    return f"{told} is {'' if verdict == 'passed' else 'not '}{operator} {number(limit)}."


def not_finite(num_non_finite: int, num_values: int) -> str:
    return f"{num_non_finite} of {num_values} values are not finite numbers."


def no_data(metric: str, window: Window) -> str:
    return f"The run has no value of {metric}{_where(window)}."


def no_baseline(why: str, is_passed: bool) -> str:
    return f"{why} Nothing to compare with: here that {'passes' if is_passed else 'fails'}."


def no_alarm(alarm: str | None, window: Window) -> str:
    return f"{f'No {alarm}' if alarm else 'No alarm'} was raised{_where(window)}."


def alarms(found: Sequence[tuple[str, int]]) -> str:
    shown = ", ".join(f"{name} at step {step}" for name, step in found[:5])
    more = f", and {len(found) - 5} more" if len(found) > 5 else ""
    return f"Raised: {shown}{more}."


def _where(window: Window) -> str:
    if window.num_last is not None:
        return f" in the last {window.num_last} steps"
    return f" in steps {window.first} to {window.last}" if window.first is not None else ""
