"""What an assertion says, once it has been read."""

from dataclasses import dataclass
from typing import Literal

from contract.gates.metrics import Aggregate
from contract.telemetry.alarms import AlarmName

Operator = Literal[">=", "<=", ">", "<"]


@dataclass(frozen=True, slots=True)
class Window:
    """Which steps count: the last so many, or those from one to another, both counted in; otherwise all."""

    num_last: int | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """constant + slope * baseline."""

    constant: float
    slope: float = 0.0

    @property
    def needs_baseline(self) -> bool:
        return self.slope != 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of a metric against a limit."""

    metric: str
    """As it was written: a short name or a catalogue's."""
    aggregate: Aggregate
    operator: Operator
    limit: Limit
    window: Window


@dataclass(frozen=True, slots=True)
class AlarmFree:
    """No alarm was raised, or none of that name."""

    alarm: AlarmName | None
    window: Window


Assertion = Comparison | AlarmFree


def needs_baseline(assertion: Assertion) -> bool:
    return isinstance(assertion, Comparison) and assertion.limit.needs_baseline
