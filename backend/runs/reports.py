"""What workers' events change about a run. Called by ingest inside its transaction, in the order of the events.

None of these fails for a run that has ended or an attempt that was replaced: such a report comes late, and is kept
where it still says something.
"""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend.models import Attempt, Run
from backend.runs import repository
from backend.runs.attempts import close_attempt, in_short
from backend.runs.events import tell_of_alarms
from backend.runs.state import ENDED, Status, announce, explain, transition
from backend.telemetry import repository as telemetry
from backend.telemetry.alarms import Episode, episodes

_AWAITS_WORKER = frozenset({Status.DISPATCHING, Status.LOST})


def record_started(session: Session, run_id: UUID, attempt: int, resumed_from_step: int | None) -> None:
    """The attempt's worker runs."""
    run, row = _load(session, run_id, attempt)
    if row is None:
        return
    row.started_at = func.now()
    row.resumed_from_step = resumed_from_step
    if run is not None:
        run.last_heartbeat_at = func.now()
        if run.status in _AWAITS_WORKER:
            transition(session, run, Status.RUNNING, _started(attempt, resumed_from_step))


def _started(attempt: int, resumed_from_step: int | None) -> str:
    if resumed_from_step is not None:
        return f"Attempt {attempt} runs, resumed from step {resumed_from_step}."
    return "Running." if attempt == 1 else f"Attempt {attempt} runs, from the start."


def record_heartbeat(
    session: Session, run_id: UUID, attempt: int, stage: str, step: int, stage_progress_fraction: float | None
) -> None:
    """The current attempt's worker lives and is at this stage; a lost run is found again."""
    run, _ = _load(session, run_id, attempt)
    if run is None:
        return
    run.last_heartbeat_at = func.now()
    run.stage, run.step, run.stage_progress_fraction = stage, step, stage_progress_fraction
    if run.status == Status.LOST:
        transition(session, run, Status.RUNNING, "Worker is back.")
    elif run.status == Status.DISPATCHING:
        transition(session, run, Status.RUNNING, "Running.")
    else:
        announce(session, run)


def record_checkpoint(session: Session, run_id: UUID, attempt: int, step: int, path: str) -> None:
    """A checkpoint is complete on the cluster's storage; also one of a replaced attempt can be resumed from."""
    run = repository.get_locked(session, run_id)
    row = repository.get_attempt(session, run_id, attempt)
    if run is None or row is None:
        return
    if run.last_checkpoint_step is None or step > run.last_checkpoint_step:
        run.last_checkpoint_step = row.last_checkpoint_step = step
        run.last_checkpoint_path = path.replace("\x00", "")


def lock_alarms(session: Session, run_id: UUID) -> Sequence[Episode]:
    """The run's alarms so far; nobody changes them until the transaction ends."""
    repository.get_locked(session, run_id)
    return _alarms(session, run_id)


def count_alarms(session: Session, run_id: UUID, before: Sequence[Episode]) -> None:
    """Alarms were raised or cleared, or a new attempt has gone back behind some of them."""
    run = repository.get_locked(session, run_id)
    if run is None:
        return
    after = _alarms(session, run_id)
    tell_of_alarms(session, run, before, after)
    num_active = sum(episode.is_active for episode in after)
    if run.num_active_alarms != num_active:
        run.num_active_alarms = num_active
        announce(session, run)


def _alarms(session: Session, run_id: UUID) -> Sequence[Episode]:
    return episodes(telemetry.list_alarm_words(session, run_id), telemetry.list_later_attempts(session, run_id))


def record_finished(
    session: Session,
    run_id: UUID,
    attempt: int,
    outcome: Literal["succeeded", "failed", "stopped"],
    is_retryable: bool,
    error: str | None,
) -> None:
    """The attempt's last word. Of the current attempt it ends the run, unless a new attempt could do better.

    A new one waits until the reconciler finds the job over: until then the old one may hold its GPUs, and only Ray
    knows whether it went down itself.
    """
    run, row = _load(session, run_id, attempt)
    if row is None or row.outcome is not None:
        return
    is_wanted = run is None or run.is_stop_requested
    if outcome == "stopped" and not is_wanted:
        error = error or "The cluster asked the worker to end."
    close_attempt(row, outcome, error)
    if run is None:
        return
    run.last_heartbeat_at = func.now()
    if outcome == "succeeded":
        transition(session, run, Status.SUCCEEDED, "All steps are done." if run.num_steps else "The draft is trained.")
    elif outcome == "stopped" and is_wanted:
        transition(session, run, Status.STOPPED, f"Stopped at step {run.step}.")
    elif outcome == "stopped" or is_retryable:
        explain(session, run, f"{in_short(error or 'The worker failed')} A new attempt follows.")
    else:
        transition(session, run, Status.FAILED, error or "The worker failed without saying why.")


def ingest_reply(session: Session, run_id: UUID) -> tuple[int, bool]:
    """(current attempt, whether the worker should stop): what ingest answers to every batch.

    A worker whose run has ended without it is told to stop, too.
    """
    current_attempt, is_stop_requested, status = repository.get_orders(session, run_id)
    return max(current_attempt, 1), is_stop_requested or status in ENDED


def _load(session: Session, run_id: UUID, number: int) -> tuple[Run | None, Attempt | None]:
    """(the run if this attempt is its current one and it goes on, the attempt if it exists)."""
    run = repository.get_locked(session, run_id)
    attempt = repository.get_attempt(session, run_id, number)
    is_current = run is not None and run.current_attempt == number and run.status not in ENDED
    return (run if is_current else None), attempt
