"""Judges runs by their gates, and keeps what came of it. Nothing here commits."""

from typing import Any
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.orm import Session

from backend.auth import audit
from backend.auth.identity import Principal
from backend.errors import ProblemError, invalid, not_found
from backend.gates import repository
from backend.gates.comparing import baseline_problems, find_baseline
from backend.gates.judging import Against, judge_alarms, judge_comparison
from backend.gates.report import Report
from backend.gates.schemas import (
    Gate,
    GateEvaluate,
    GateEvaluationRead,
    GateEvaluationSummary,
    GateRead,
    GateResult,
    RunGates,
    stored,
)
from backend.gates.windows import last_step, measure
from backend.models import GateEvaluation, Run
from backend.runs import repository as runs
from backend.runs.events import tell
from backend.runs.state import ENDED, announce
from backend.telemetry import repository as telemetry
from backend.telemetry.alarms import episodes
from backend.telemetry.notices import append_log
from contract.gates.assertion import AlarmFree, Comparison, Window
from contract.gates.expression import parse
from contract.gates.metrics import resolve


def evaluate(session: Session, run_id: UUID, body: GateEvaluate, principal: Principal) -> GateEvaluationRead:
    """Judges a run by the given gates, or by its own. Raises ApiError (422)."""
    run = runs.get_locked(session, run_id)
    if run is None:
        raise not_found("run", run_id)
    if body.gates is None and not run.gates:
        raise invalid([ProblemError(pointer="/gates", detail="the run was launched without gates: give some")])
    if body.gates is not None:
        problems = baseline_problems(session, body.gates, run.project_id, run.cloned_from_id)
        if problems:
            raise invalid(problems)
    gates = run.gates if body.gates is None else stored(body.gates)
    evaluation = _judged(session, run, gates, principal.name)
    audit.record(session, principal, "run.evaluate_gates", run.id, run.project_id, verdict=evaluation.verdict)
    return _read(evaluation)


def evaluate_at_end(session: Session, run: Run) -> None:
    """Judges a locked run that has ended by its own gates."""
    evaluation = _judged(session, run, run.gates, None)
    read = _read(evaluation)
    kept = f"{read.num_gates - read.num_failed} of {read.num_gates} gates passed."
    append_log(session, run.id, run.current_attempt, "error" if read.num_failed else "info", kept)


def give_up(session: Session, run: Run) -> None:
    """Of a locked run that cannot be judged: its gates have failed, for nobody knows whether they were kept."""
    reason = "The service could not judge the gate; its log says why."
    results = [
        GateResult(
            name=gate["name"] or gate["assertion"],
            assertion=gate["assertion"],
            verdict="no_data",
            is_passed=False,
            reason=reason,
        )
        for gate in run.gates
    ]
    _keep(session, run, results, None)


def _judged(session: Session, run: Run, gates: list[dict[str, Any]], by: str | None) -> GateEvaluation:
    return _keep(session, run, [_judge(session, run, gate) for gate in gates], by)


def _keep(session: Session, run: Run, results: list[GateResult], by: str | None) -> GateEvaluation:
    evaluation = GateEvaluation(
        run_id=run.id,
        trigger="end" if by is None else "request",
        evaluated_by=by,
        run_status=run.status,
        verdict="passed" if all(result.is_passed for result in results) else "failed",
        results=[result.model_dump(mode="json") for result in results],
    )
    repository.insert_evaluation(session, evaluation)
    if run.status in ENDED:
        run.gates_verdict = evaluation.verdict
        announce(session, run)
        told = _read(evaluation).model_dump(exclude={"run_id", "run_status"})
        tell(session, run, "gate.passed" if evaluation.verdict == "passed" else "gate.failed", gates=told)
    return evaluation


def _judge(session: Session, run: Run, given: dict[str, Any]) -> GateResult:
    try:
        gate = Gate.model_validate(given)
    except ValidationError as error:
        return _unreadable(given, error)
    assertion = parse(gate.assertion)
    if isinstance(assertion, AlarmFree):
        return _judge_alarms(session, run, gate, assertion)
    metric = resolve(assertion.metric, run.config.get("job", "grpo"))
    assert metric is not None
    is_pooled = assertion.aggregate == "mean"
    measured = measure(session, run.id, metric, assertion.window, is_pooled)
    return judge_comparison(gate, assertion, metric, measured, _baseline(session, run, gate, assertion))


def _unreadable(given: dict[str, Any], error: ValidationError) -> GateResult:
    """Of an earlier version: this one knows no such metric any more."""
    assertion = str(given.get("assertion"))
    reason = f"This version cannot read the gate: {error.errors()[0]['msg'].removeprefix('Value error, ')}."
    name = given.get("name") or assertion
    return GateResult(name=name, assertion=assertion, verdict="no_data", is_passed=False, reason=reason)


def _baseline(session: Session, run: Run, gate: Gate, assertion: Comparison) -> Against | str | None:
    if gate.baseline is None:
        return None
    found = find_baseline(session, run, gate.baseline)
    if isinstance(found, str):
        return found
    metric = resolve(assertion.metric, found.config.get("job", "grpo"))
    assert metric is not None
    sample = measure(session, found.id, metric, assertion.window, assertion.aggregate == "mean").sample
    if sample is None:
        return f"Run {found.id} has no value of {metric.name} there."
    return Against(found.id, found.name, sample)


def _judge_alarms(session: Session, run: Run, gate: Gate, assertion: AlarmFree) -> GateResult:
    told = episodes(telemetry.list_alarm_words(session, run.id), telemetry.list_later_attempts(session, run.id))
    if assertion.window.num_last is not None:
        last = last_step(session, run.id)
        window = Window(first=max(0, last - assertion.window.num_last + 1), last=last)
        assertion = AlarmFree(assertion.alarm, window)
    return judge_alarms(gate, assertion, told)


def read(session: Session, run_id: UUID, evaluation_id: UUID | None) -> RunGates:
    """Raises ApiError (404), also for an evaluation of another run."""
    run = runs.get(session, run_id)
    if run is None:
        raise not_found("run", run_id)
    evaluation = repository.get_evaluation(session, run_id, evaluation_id)
    if evaluation is None and evaluation_id is not None:
        raise not_found("evaluation", evaluation_id)
    return RunGates.model_validate(
        {
            "run_id": run_id,
            "verdict": run.gates_verdict,
            "gates": [GateRead.model_validate(gate) for gate in run.gates],
            "evaluation": None if evaluation is None else _read(evaluation),
            "evaluations": [
                GateEvaluationSummary.model_validate(each) for each in repository.list_evaluations(session, run_id)
            ],
        }
    )


def report(session: Session, run_id: UUID, evaluation_id: UUID | None, public_url: str) -> Report:
    """The same with what reports say of the run. Raises ApiError (404)."""
    gates = read(session, run_id, evaluation_id)
    run = runs.get(session, run_id)
    assert run is not None
    return Report(
        run_id=run.id,
        run_name=run.name,
        status=run.status,
        status_reason=run.status_reason,
        started_at=run.started_at,
        ended_at=run.ended_at,
        gates=gates,
        public_url=public_url,
    )


def _read(evaluation: GateEvaluation) -> GateEvaluationRead:
    results = [GateResult.model_validate(result) for result in evaluation.results]
    num_failed = sum(not result.is_passed for result in results)
    return GateEvaluationRead.model_validate(
        {
            **{
                name: getattr(evaluation, name) for name in GateEvaluationRead.model_fields if hasattr(evaluation, name)
            },
            "results": results,
            "num_gates": len(results),
            "num_failed": num_failed,
        }
    )
