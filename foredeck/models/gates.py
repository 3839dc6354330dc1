"""Gates: what must hold of a run, and whether it does."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import ConfigDict

from foredeck.models.base import Answer


class Gate(Answer):
    """An assertion on what a run measured."""

    model_config = ConfigDict(extra="forbid")

    assertion: str
    """As in `acceptance_length >= 2.8 over last 20 steps`."""
    name: str | None = None
    baseline: str | None = None
    """`origin`, `run:<id>` or `label:<key>:<value>`; where the assertion speaks of `baseline`."""
    confidence: float = 0.95
    on_undecided: Literal["pass", "fail", "estimate"] = "pass"
    on_no_baseline: Literal["pass", "fail"] = "pass"


class GateBaseline(Answer):
    """What the run was compared with."""

    run_id: UUID
    run_name: str
    estimate: float | None = None
    num_values: int


class GateResult(Answer):
    """What became of one gate."""

    name: str
    assertion: str
    verdict: str
    is_passed: bool
    reason: str
    unit: str | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    first_step: int | None = None
    last_step: int | None = None
    num_values: int = 0
    baseline: GateBaseline | None = None


class GateEvaluation(Answer):
    """All gates, judged at one time."""

    id: UUID
    run_id: UUID
    created_at: datetime
    run_status: str
    verdict: Literal["passed", "failed"]
    num_gates: int
    num_failed: int
    results: list[GateResult]


class RunGates(Answer):
    """A run's gates and their newest evaluation."""

    run_id: UUID
    verdict: Literal["passed", "failed", "pending"] | None
    gates: list[Gate]
    evaluation: GateEvaluation | None
