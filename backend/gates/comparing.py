"""Finds the run that a gate compares with."""

from uuid import UUID

from sqlalchemy.orm import Session

from backend.errors import ProblemError
from backend.gates import repository
from backend.gates.baselines import Baseline, parse_baseline
from backend.gates.schemas import Gate
from backend.models import Run


def find_baseline(session: Session, run: Run, text: str) -> Run | str:
    """The run, or a sentence that says why there is none. Only a run of the same project is one: whoever may see the
    one may see the other, and no figure leaves its project."""
    baseline = parse_baseline(text)
    if baseline.labels:
        shown = ", ".join(f"{key}:{value}" for key, value in baseline.labels.items())
        found = repository.get_newest_green(session, run, baseline.labels)
        return found or f"No earlier run labelled {shown} has succeeded and kept its gates."
    run_id = run.cloned_from_id if baseline.is_origin else baseline.run_id
    if run_id is None:
        return "The run was not cloned from another."
    return repository.get_run_of_project(session, run_id, run.project_id) or f"There is no run {run_id} in its project."


def baseline_problems(
    session: Session, gates: list[Gate], project_id: UUID, origin_id: UUID | None
) -> list[ProblemError]:
    """What is wrong with the baselines of a run that is to be launched, or is judged on demand."""
    problems = []
    for index, gate in enumerate(gates):
        detail = gate.baseline and _problem(session, parse_baseline(gate.baseline), project_id, origin_id)
        if detail:
            problems.append(ProblemError(pointer=f"/gates/{index}/baseline", detail=detail, value=gate.baseline))
    return problems


def _problem(session: Session, baseline: Baseline, project_id: UUID, origin_id: UUID | None) -> str | None:
    run_id = origin_id if baseline.is_origin else baseline.run_id
    if baseline.is_origin and run_id is None:
        return "the run is not cloned from another: name a run or labels"
    if run_id is not None and repository.get_run_of_project(session, run_id, project_id) is None:
        return "no such run in the project of the run: only one of the same project is a baseline"
    return None
