"""What gates are and what they were judged to be, as the API has them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from backend.auth.schemas import Name, Request, Schema
from backend.gates.baselines import parse_baseline
from contract.gates.assertion import needs_baseline
from contract.gates.expression import parse
from contract.gates.tokens import MAX_LENGTH

MAX_GATES = 32
GatesVerdict = Literal["passed", "failed", "pending"]
Verdict = Literal["passed", "failed", "undecided", "no_data", "no_baseline"]
SOURCES = "origin, run:<id>, or label:<key>:<value>"


class Gate(Request):
    """An assertion that a run has to keep."""

    assertion: str = Field(max_length=MAX_LENGTH, examples=["acceptance_length >= 2.8 over last 20 steps"])
    """`[aggregate(]metric[)] >= limit [over last N steps]`, or `no alarms`: see docs/concepts/gates.md."""
    name: Name | None = None
    """Without one: the assertion."""
    baseline: str | None = Field(None, max_length=1000, validate_default=True, examples=["label:branch:main", "origin"])
    """What `baseline` in the assertion is: `origin`, the run that this one was cloned from; `run:<id>`; or
    `label:<key>:<value>[,<key>:<value>...]`, the newest green run with these labels that was launched before this one.
    All within the run's project."""
    confidence: float = Field(0.95, ge=0.5, le=0.999, allow_inf_nan=False)
    """How sure the verdict has to be: that of the estimate's interval."""
    on_undecided: Literal["pass", "fail", "estimate"] = "pass"
    """What the gate comes to where the interval holds the limit: with `pass`, only evidence makes a build red; with
    `estimate`, the estimate alone decides."""
    on_no_baseline: Literal["pass", "fail"] = "pass"
    """What it comes to where there is no baseline (yet)."""

    @field_validator("assertion")
    @classmethod
    def _is_assertion(cls, text: str) -> str:
        parse(text)
        return text

    @field_validator("baseline")
    @classmethod
    def _is_baseline(cls, text: str | None, info: ValidationInfo) -> str | None:
        assertion = info.data.get("assertion")
        is_needed = assertion is not None and needs_baseline(parse(assertion))
        if text is None and is_needed:
            raise ValueError(f"the assertion compares with a baseline: say which, as {SOURCES}")
        if text is not None and assertion is not None and not is_needed:
            raise ValueError("does nothing: the assertion does not say `baseline`")
        if text is not None:
            parse_baseline(text)
        return text

    @property
    def title(self) -> str:
        return self.name or self.assertion


class GateRead(Schema):
    """A gate as it was given."""

    assertion: str
    name: str | None
    baseline: str | None
    confidence: float
    on_undecided: Literal["pass", "fail", "estimate"]
    on_no_baseline: Literal["pass", "fail"]


def stored(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    """As a run's row has them."""
    return [gate.model_dump(mode="json") for gate in gates]


Gates = Annotated[list[Gate], Field(max_length=MAX_GATES)]


class GateEvaluate(Request):
    """Gates to judge a run by."""

    gates: Gates | None = Field(None, min_length=1)
    """Without any: those that the run was launched with."""


class BaselineFigure(Schema):
    """What a run was compared with."""

    run_id: UUID
    run_name: str
    estimate: float | None
    """The same figure of that run."""
    first_step: int | None
    last_step: int | None
    num_values: int
    is_paired: bool
    """Whether the two runs were compared step by step."""


class GateResult(Schema):
    """What came of one gate, and the evidence."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    name: str
    assertion: str
    verdict: Verdict
    """undecided: the interval holds the limit."""
    is_passed: bool
    """What it counts as, by on_undecided and on_no_baseline. A gate without data never passes."""
    reason: str
    """One sentence."""
    metric: str | None = None
    """Name in the catalogue; null for a gate on alarms."""
    unit: str | None = None
    aggregate: str | None = None
    operator: str | None = None
    confidence: float | None = None
    estimate: float | None = None
    low: float | None = None
    """The interval of the estimate, with the baseline's uncertainty in it: what is compared with the limit. Null for an
    end about which nothing can be said."""
    high: float | None = None
    limit: float | None = None
    first_step: int | None = None
    last_step: int | None = None
    num_values: int = 0
    num_non_finite: int = 0
    num_effective: float | None = None
    """How many independent values they are worth."""
    method: str | None = None
    """How the interval was made."""
    baseline: BaselineFigure | None = None


class GateEvaluationRead(Schema):
    """One judgement of a run."""

    id: UUID
    run_id: UUID
    created_at: datetime
    trigger: Literal["end", "request"]
    """end: because the run had ended; request: somebody asked."""
    evaluated_by: str | None
    """Who asked; null for the service itself."""
    run_status: str
    """Of the run at that time."""
    verdict: Literal["passed", "failed"]
    """passed where every gate is."""
    num_gates: int
    num_failed: int
    results: list[GateResult]


class GateEvaluationSummary(Schema):
    id: UUID
    created_at: datetime
    trigger: Literal["end", "request"]
    verdict: Literal["passed", "failed"]


class RunGates(Schema):
    """A run's gates and what came of them."""

    run_id: UUID
    verdict: GatesVerdict | None
    """pending until the run has ended and was judged; null where there is nothing to judge."""
    gates: list[GateRead]
    """As it was launched with."""
    evaluation: GateEvaluationRead | None
    """The newest, or the one that was asked for."""
    evaluations: list[GateEvaluationSummary]
    """The newest 20, newest first."""
