"""Attempts: one begins, one ends, the next takes over from the last checkpoint."""

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend import queue
from backend.models import Attempt, Run
from backend.runs import repository
from backend.runs.state import Status, transition

BACKOFF_S = (5.0, 30.0, 120.0)
"""Before the next attempt, after one, two, and three or more in a row that brought no new checkpoint."""


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


def judge_dead(session: Session, run: Run, why: str) -> None:
    """The current attempt's job is over: the next attempt begins, unless that was asked for or it was the last."""
    attempt = repository.get_attempt(session, run.id, run.current_attempt)
    assert attempt is not None
    close_attempt(attempt, "stopped" if run.is_stop_requested else "crashed", why)
    why = in_short(attempt.error or why)
    if run.is_stop_requested:
        transition(session, run, Status.STOPPED, f"Stopped at step {run.step}.")
    elif _is_hopeless(session, run):
        transition(session, run, Status.FAILED, f"{why} {_limit(run.max_attempts)}")
    else:
        num_vain = repository.count_latest_vain_attempts(session, run.id)
        _start_next(session, run, why, BACKOFF_S[min(max(num_vain, 1), len(BACKOFF_S)) - 1])


def interrupt(session: Session, run: Run, why: str) -> None:
    """The current attempt went down with this machine's own Ray, which is nothing to be held against the run."""
    attempt = repository.get_attempt(session, run.id, run.current_attempt)
    assert attempt is not None
    attempt.outcome, attempt.error, attempt.ended_at = "stopped", why, attempt.ended_at or func.now()
    if run.is_stop_requested:
        transition(session, run, Status.STOPPED, f"Stopped at step {run.step}.")
    else:
        _start_next(session, run, why, 0)


def abandon(session: Session, run: Run, why: str) -> None:
    """A run that was asked to stop ends without Ray's word."""
    attempt = repository.get_attempt(session, run.id, run.current_attempt)
    assert attempt is not None
    close_attempt(attempt, "stopped", why)
    transition(session, run, Status.STOPPED, f"Stopped at step {run.step}. {why}")


def in_short(error: str) -> str:
    """The first line as a sentence; below it there may be the end of a log."""
    return f"{error.partition(chr(10))[0].rstrip('.')}."


def _start_next(session: Session, run: Run, why: str, delay_s: float) -> None:
    step = run.last_checkpoint_step
    source = "from the start" if step is None else f"from the checkpoint of step {step}"
    when = f" in {delay_s:.0f} s" if delay_s else ""
    begin(session, run, f"{why} Attempt {run.current_attempt + 1} goes on {source}{when}.")
    queue.add(session, "dispatch", run.id, run.current_attempt, due_in_s=delay_s)


def _is_hopeless(session: Session, run: Run) -> bool:
    return repository.count_counted_attempts(session, run.id) >= run.max_attempts


def _limit(max_attempts: int) -> str:
    if max_attempts == 1:
        return "The attempt brought no new checkpoint, and it was the only one."
    return f"It was the last of {max_attempts} attempts without a new checkpoint."
