"""Live runs as the reconciler sees them."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Float, exists, extract, func, select, update
from sqlalchemy.orm import Session

from backend.launcher.connect import Target
from backend.models import Attempt, Cluster, Outbox, Run
from backend.runs.state import LIVE, Status

_SILENT_S = extract("epoch", func.now() - func.coalesce(Run.last_heartbeat_at, Attempt.created_at)).cast(Float)


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run with a job at Ray."""

    id: UUID
    status: Status
    attempt: int
    submission_id: str
    silent_s: float
    has_last_word: bool
    """The attempt's outcome is known."""
    ended_s: float | None
    """Since the attempt's end was noticed."""
    target: Target
    api_url: str


def list_live(session: Session) -> list[LiveRun]:
    """Runs that hold a place, except those whose job is still to be submitted."""
    is_unsubmitted = exists().where(Outbox.run_id == Run.id, Outbox.kind == "dispatch")
    statement = (
        select(
            Run.id,
            Run.status,
            Attempt.number,
            Attempt.submission_id,
            _SILENT_S,
            Attempt.outcome.is_not(None),
            extract("epoch", func.now() - Attempt.ended_at).cast(Float),
            Cluster.name,
            Cluster.address,
            Cluster.api_url,
        )
        .join(Attempt, (Attempt.run_id == Run.id) & (Attempt.number == Run.current_attempt))
        .join(Cluster, Cluster.id == Run.cluster_id)
        .where(Run.status.in_(LIVE), ~is_unsubmitted)
        .order_by(Cluster.name, Run.created_at)
    )
    return [
        LiveRun(id_, Status(status), number, submission_id, silent_s, has_last_word, ended_s, Target(*place), api_url)
        for id_, status, number, submission_id, silent_s, has_last_word, ended_s, *place, api_url in session.execute(
            statement
        )
    ]


def is_still_silent(session: Session, run_id: UUID, silent_s: float) -> bool:
    """No heartbeat has come since it was looked at."""
    is_old = Run.last_heartbeat_at <= func.now() - timedelta(seconds=silent_s)
    return session.scalar(select(Run.id).where(Run.id == run_id, is_old)) is not None


def get_silent_s(session: Session, run_id: UUID) -> float:
    """Since the last word of the current attempt's worker, or since the attempt began."""
    statement = (
        select(_SILENT_S)
        .join(Attempt, (Attempt.run_id == Run.id) & (Attempt.number == Run.current_attempt))
        .where(Run.id == run_id)
    )
    return float(session.scalars(statement).one())


def note_end(session: Session, run_id: UUID, number: int) -> None:
    """The attempt's job is over from now on, although nobody knows yet with what result."""
    is_it = (Attempt.run_id == run_id) & (Attempt.number == number) & Attempt.ended_at.is_(None)
    session.execute(update(Attempt).where(is_it).values(ended_at=func.now()))
