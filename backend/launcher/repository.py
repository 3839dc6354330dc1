"""Live runs as the reconciler sees them."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, exists, extract, func, select
from sqlalchemy.orm import Session

from backend.launcher.connect import Target
from backend.models import ApiToken, Attempt, Cluster, Outbox, Run
from backend.runs.state import LIVE, Status


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A run with a job at Ray."""

    id: UUID
    status: Status
    attempt: int
    submission_id: str
    silent_s: float
    target: Target
    api_url: str


def list_live(session: Session) -> list[LiveRun]:
    """Runs that hold a place, except those whose job is still to be submitted."""
    is_unsubmitted = exists().where(Outbox.run_id == Run.id, Outbox.kind == "dispatch")
    last_word = func.coalesce(Run.last_heartbeat_at, Attempt.created_at)
    statement = (
        select(
            Run.id,
            Run.status,
            Attempt.number,
            Attempt.submission_id,
            extract("epoch", func.now() - last_word),
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
        LiveRun(id_, Status(status), number, submission_id, float(silent_s), Target(name, address), api_url)
        for id_, status, number, submission_id, silent_s, name, address, api_url in session.execute(statement)
    ]


def is_still_silent(session: Session, run_id: UUID, silent_s: float) -> bool:
    """No heartbeat has come since it was looked at."""
    is_old = Run.last_heartbeat_at <= func.now() - timedelta(seconds=silent_s)
    return session.scalar(select(Run.id).where(Run.id == run_id, is_old)) is not None


def delete_worker_tokens(session: Session, ended_for_s: float) -> None:
    """Those of runs that ended so long ago that nothing can be left to deliver."""
    ended = select(Run.id).where(Run.ended_at < func.now() - timedelta(seconds=ended_for_s))
    statement = delete(ApiToken).where(ApiToken.run_id.in_(ended))
    session.execute(statement, execution_options={"synchronize_session": False})
