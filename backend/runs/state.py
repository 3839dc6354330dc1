"""The life of a run: its statuses, the allowed ways between them, and the only code that writes them."""

from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend import queue
from backend.models import Run
from backend.runs.events import tell
from backend.telemetry.notices import append_log, publish
from backend.webhooks.events import EventType


class Status(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    """Waits for a place on its cluster."""
    DISPATCHING = "dispatching"
    """An attempt is being handed to Ray, or its worker has not reported yet."""
    RUNNING = "running"
    """Its worker reports."""
    LOST = "lost"
    """Its worker is silent, and nobody knows yet what became of it."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


LIVE = frozenset({Status.DISPATCHING, Status.RUNNING, Status.LOST})
"""Statuses that hold a place on the cluster."""
ENDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.STOPPED})
"""Statuses that never change."""

TRANSITIONS: MappingProxyType[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.QUEUED: frozenset({Status.DISPATCHING, Status.STOPPED}),
        # To itself: the job died before its worker reported, and a new attempt begins.
        Status.DISPATCHING: frozenset({Status.DISPATCHING, Status.RUNNING, *ENDED}),
        Status.RUNNING: frozenset({Status.LOST, Status.DISPATCHING, *ENDED}),
        Status.LOST: frozenset({Status.RUNNING, Status.DISPATCHING, *ENDED}),
        Status.SUCCEEDED: frozenset(),
        Status.FAILED: frozenset(),
        Status.STOPPED: frozenset(),
    }
)


class TransitionError(Exception):
    """The way between the two statuses is not allowed: a mistake in the program."""


def transition(session: Session, run: Run, to: Status, reason: str) -> None:
    """Moves a locked run to a status, and says so in its log and to live streams.

    Raises:
        TransitionError: TRANSITIONS does not allow it; nothing has been changed.
    """
    current = Status(run.status)
    if to not in TRANSITIONS[current]:
        raise TransitionError(f"run {run.id} cannot go from {current} to {to}")
    if to in ENDED:  # first of all, while it still waits itself: so everybody locks the waiting in the same order
        queue.wake_waiting(session, run.cluster_id)
    is_first_start = to is Status.RUNNING and run.started_at is None
    run.status = to
    if is_first_start:
        run.started_at = func.now()
    if to in ENDED:
        run.ended_at = func.now()
        queue.forget(session, run.id)
        if run.gates:
            queue.add(session, "gates", run.id, run.current_attempt)
    append_log(session, run.id, run.current_attempt, _LEVELS.get(to, "info"), reason)
    _write_reason(session, run, reason)
    event_type: EventType | None = "run.started" if is_first_start else _EVENTS.get(to)
    if event_type is not None:
        tell(session, run, event_type)


_EVENTS: dict[Status, EventType] = {
    Status.RUNNING: "run.resumed",
    Status.LOST: "run.lost",
    Status.SUCCEEDED: "run.succeeded",
    Status.FAILED: "run.failed",
    Status.STOPPED: "run.stopped",
}
_LEVELS: dict[Status, Literal["warning", "error"]] = {Status.LOST: "warning", Status.FAILED: "error"}


def explain(session: Session, run: Run, reason: str) -> None:
    """Says anew why a run is in its status."""
    if run.status_reason != reason:
        _write_reason(session, run, reason)


def _write_reason(session: Session, run: Run, reason: str) -> None:
    run.status_reason = reason
    announce(session, run)


def announce(session: Session, run: Run) -> None:
    """Tells live streams what of a run has changed."""
    body = {
        "status": str(run.status),
        "status_reason": run.status_reason,
        "is_ended": run.status in ENDED,
        "is_stop_requested": run.is_stop_requested,
        "current_attempt": run.current_attempt,
        "stage": run.stage,
        "step": run.step,
        "num_steps": run.num_steps,
        "stage_progress_fraction": run.stage_progress_fraction,
        "name": run.name,
        "num_active_alarms": run.num_active_alarms,
        "gates_verdict": run.gates_verdict,
    }
    publish(session, run.id, "run", body)
