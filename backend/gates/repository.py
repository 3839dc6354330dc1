"""SQL of gates."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import Row, func, select, text, tuple_
from sqlalchemy.orm import Session

from backend.models import GateEvaluation, Run, Series

NUM_LISTED = 20

_VALUES = text("""
SELECT series_id, step, avg(value) AS value FROM (
  SELECT series_id, step, attempt, value, max(attempt) OVER (PARTITION BY series_id, step) AS newest
  FROM point WHERE series_id = ANY(CAST(:ids AS bigint[])) AND step BETWEEN :first AND :last
) AS ranked WHERE attempt = newest GROUP BY series_id, step ORDER BY series_id, step
""")


def list_series_ids(session: Session, run_id: UUID, names: Collection[str]) -> dict[str, int]:
    statement = select(Series.name, Series.id).where(Series.run_id == run_id, Series.name.in_(names))
    return dict(session.execute(statement).all())


def list_values(session: Session, series_ids: Collection[int], first: int, last: int) -> Sequence[Row[int, int, float]]:
    """(series, step, value) by step; where several attempts reached a step, the newest counts."""
    return session.execute(_VALUES, {"ids": list(series_ids), "first": first, "last": last}).all()


def get_newest_green(session: Session, run: Run, labels: Mapping[str, str]) -> Run | None:
    """The newest run like this one, launched before it in its project, that has succeeded and kept its gates."""
    job = func.coalesce(Run.config["job"].astext, "grpo")
    statement = select(Run).where(
        Run.project_id == run.project_id,
        Run.labels.contains(dict(labels)),
        Run.status == "succeeded",
        func.coalesce(Run.gates_verdict, "passed") == "passed",
        job == run.config.get("job", "grpo"),
        tuple_(Run.created_at, Run.id) < tuple_(run.created_at, run.id),
    )
    return session.scalar(statement.order_by(Run.created_at.desc(), Run.id.desc()).limit(1))


def get_run_of_project(session: Session, run_id: UUID, project_id: UUID) -> Run | None:
    return session.scalar(select(Run).where(Run.id == run_id, Run.project_id == project_id))


def insert_evaluation(session: Session, evaluation: GateEvaluation) -> None:
    session.add(evaluation)
    session.flush()
    session.refresh(evaluation)


def get_evaluation(session: Session, run_id: UUID, evaluation_id: UUID | None) -> GateEvaluation | None:
    """The run's evaluation of that id, or its newest."""
    statement = select(GateEvaluation).where(GateEvaluation.run_id == run_id)
    if evaluation_id is not None:
        statement = statement.where(GateEvaluation.id == evaluation_id)
    return session.scalar(statement.order_by(GateEvaluation.created_at.desc()).limit(1))


def list_evaluations(session: Session, run_id: UUID) -> Sequence[GateEvaluation]:
    """The newest, newest first."""
    statement = select(GateEvaluation).where(GateEvaluation.run_id == run_id)
    return session.scalars(statement.order_by(GateEvaluation.created_at.desc()).limit(NUM_LISTED)).all()
