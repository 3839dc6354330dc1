"""Attempts: one begins, one ends, the next takes over from the last checkpoint."""

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend import queue
from backend.models import Attempt, Run
from backend.runs import repository
from backend.runs.state import Status, transition


def begin(session: Session, run: Run, reason: str) -> None:
    """A locked run's next attempt exists from here on."""
    run.current_attempt += 1
    run.last_heartbeat_at = None
    run.stage, run.stage_progress_fraction = None, None
    session.flush()
    repository.insert_attempt(session, run, run.current_attempt)
    transition(session, run, Status.DISPATCHING, reason)


def close_attempt(attempt: Attempt, outcome: str, error: str | None) -> None:
    """The first word about an attempt's end counts."""
    if attempt.outcome is None:
        attempt.outcome, attempt.error = outcome, error
        attempt.ended_at = func.now()


def start_next(session: Session, run: Run, why: str) -> None:
    """The current attempt is over: the next one is promised, or the run fails when there is none left."""
    if run.current_attempt >= run.max_attempts:
        tried = "the only attempt" if run.max_attempts == 1 else f"the last of {run.max_attempts} attempts"
        transition(session, run, Status.FAILED, f"{why} It was {tried}.")
        return
    step = run.last_checkpoint_step
    source = "from the start" if step is None else f"from the checkpoint of step {step}"
    begin(session, run, f"{why} Attempt {run.current_attempt + 1} of {run.max_attempts} goes on {source}.")
    queue.add(session, "dispatch", run.id, run.current_attempt)


def judge_dead(session: Session, run: Run, why: str) -> None:
    """The current attempt's job is gone without a last word."""
    attempt = repository.get_attempt(session, run.id, run.current_attempt)
    if attempt is not None:
        close_attempt(attempt, "stopped" if run.is_stop_requested else "crashed", why)
    if run.is_stop_requested:
        transition(session, run, Status.STOPPED, f"Stopped at step {run.step}.")
    else:
        start_next(session, run, why)


def judge_silent_end(session: Session, run: Run, why: str) -> None:
    """The current attempt's job ended well, but nobody knows with what result."""
    attempt = repository.get_attempt(session, run.id, run.current_attempt)
    if attempt is not None:
        close_attempt(attempt, "stopped" if run.is_stop_requested else "failed", why)
    transition(session, run, Status.STOPPED if run.is_stop_requested else Status.FAILED, why)
