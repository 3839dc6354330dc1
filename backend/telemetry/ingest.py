"""Stores what workers send: each event once, in the order of its emitter's seq."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from uuid import UUID

from sqlalchemy.orm import Session

from backend.errors import ApiError, conflict
from backend.runs import service as runs
from backend.telemetry import ingest_repository as repository
from backend.telemetry.notices import append_log, publish
from contract.telemetry.events import (
    Acknowledgement,
    Alarm,
    Checkpoint,
    Event,
    Finished,
    Heartbeat,
    IngestRequest,
    IngestResponse,
    Log,
    Metrics,
    Samples,
    Started,
)

Source = tuple[int, str]
"""Attempt and emitter: what counts seq."""


def ingest(
    session: Session, batch: IngestRequest, allowed_run_id: UUID | None, up_to_attempt: int | None = None
) -> IngestResponse:
    """Store the batch's new events and acknowledge, per source, up to where everything is stored.

    An event that was stored before is passed over. Behind a gap in seq nothing is stored, so that the worker sends it
    again. Raises ApiError: 403 for events of a run other than the token's, or of an attempt after the token's, 409 for
    one that does not exist.
    """
    run_id = _run_of(batch.events, allowed_run_id)
    _check_reach(batch.events, up_to_attempt)
    by_source: dict[Source, list[Event]] = defaultdict(list)
    for event in batch.events:
        by_source[event.attempt, event.emitter].append(event)
    _check_attempts(session, run_id, {attempt for attempt, _ in by_source})
    marks = repository.lock_marks(session, run_id, sorted(by_source))
    fresh = {source: following(marks[source], by_source[source]) for source in sorted(by_source)}
    marks |= {source: events[-1].seq for source, events in fresh.items() if events}
    repository.advance_marks(session, run_id, {source: marks[source] for source, events in fresh.items() if events})
    _store(session, run_id, fresh)
    current_attempt, is_stop_requested = runs.ingest_reply(session, run_id)
    acknowledged = [Acknowledgement(attempt=a, emitter=e, seq=marks[a, e]) for a, e in sorted(by_source)]
    return IngestResponse(
        acknowledged=acknowledged, current_attempt=current_attempt, is_stop_requested=is_stop_requested
    )


def following(mark: int, events: Iterable[Event]) -> list[Event]:
    """The events that follow the mark without a gap, whatever order they came in; of equal seq the first."""
    accepted: list[Event] = []
    for event in sorted(events, key=lambda event: event.seq):
        if event.seq == mark + 1:
            accepted.append(event)
            mark = event.seq
    return accepted


def without_stale_heartbeats(events: Sequence[Event]) -> list[Event]:
    """Events of one source less every heartbeat but the last: a spool that catches up brings hundreds."""
    last = max((event.seq for event in events if isinstance(event.body, Heartbeat)), default=0)
    return [event for event in events if not isinstance(event.body, Heartbeat) or event.seq == last]


def _run_of(events: Sequence[Event], allowed_run_id: UUID | None) -> UUID:
    foreign = {event.run_id for event in events} - {allowed_run_id}
    if allowed_run_id is None or foreign:
        named = f"run {next(iter(foreign))}" if foreign else "any run"
        raise ApiError(
            HTTPStatus.FORBIDDEN, f"This token may not report to {named}. Use the token of the run's worker."
        )
    return allowed_run_id


def _check_reach(events: Sequence[Event], up_to_attempt: int | None) -> None:
    """A worker reports for its attempt and delivers what those before have left."""
    last = max(event.attempt for event in events)
    if up_to_attempt is not None and last > up_to_attempt:
        raise ApiError(
            HTTPStatus.FORBIDDEN, f"This token is of attempt {up_to_attempt}, and may not report for attempt {last}."
        )


def _check_attempts(session: Session, run_id: UUID, attempts: set[int]) -> None:
    unknown = attempts - repository.list_attempts(session, run_id)
    if unknown:
        raise conflict(f"Run {run_id} has no attempt {min(unknown)}.")


def _store(session: Session, run_id: UUID, fresh: Mapping[Source, Sequence[Event]]) -> None:
    is_about_alarms = any(isinstance(event.body, Alarm | Started) for events in fresh.values() for event in events)
    alarms = runs.lock_alarms(session, run_id) if is_about_alarms else ()
    for (attempt, emitter), events in fresh.items():
        _store_metrics(session, run_id, attempt, emitter, events)
        _store_samples(session, run_id, attempt, events)
        _store_alarms(session, run_id, attempt, events)
        for event in without_stale_heartbeats(events):
            _apply(session, run_id, event)
    if is_about_alarms:
        runs.count_alarms(session, run_id, alarms)


def _store_metrics(session: Session, run_id: UUID, attempt: int, emitter: str, events: Sequence[Event]) -> None:
    measurements = [
        (name, event.body.step, value, event.time)
        for event in events
        if isinstance(event.body, Metrics)
        for name, value in event.body.values.items()
    ]
    if measurements:
        repository.insert_points(session, run_id, attempt, emitter, measurements)
        steps = [step for _, step, *_ in measurements]
        names = sorted({name for name, *_ in measurements})
        publish(session, run_id, "series", {"names": names, "step": max(steps), "from_step": min(steps)})


def _store_samples(session: Session, run_id: UUID, attempt: int, events: Sequence[Event]) -> None:
    bodies = [event.body for event in events if isinstance(event.body, Samples)]
    if bodies:
        repository.insert_samples(
            session, run_id, attempt, [(body.step, sample) for body in bodies for sample in body.samples]
        )
        publish(session, run_id, "samples", {"step": max(body.step for body in bodies)})


def _store_alarms(session: Session, run_id: UUID, attempt: int, events: Sequence[Event]) -> None:
    words = [(event.body, event.time) for event in events if isinstance(event.body, Alarm)]
    if words:
        repository.insert_alarms(session, run_id, attempt, words)
        raised = sorted({body.name.value for body, _ in words if body.is_raised})
        cleared = sorted({body.name.value for body, _ in words if not body.is_raised})
        step = max(body.step for body, _ in words)
        publish(session, run_id, "alarm", {"raised": raised, "cleared": cleared, "step": step})


def _apply(session: Session, run_id: UUID, event: Event) -> None:
    body, attempt = event.body, event.attempt
    match body:
        case Started():
            runs.record_started(session, run_id, attempt, body.resumed_from_step)
        case Heartbeat():
            runs.record_heartbeat(session, run_id, attempt, body.stage, body.step, body.stage_progress_fraction)
        case Checkpoint():
            runs.record_checkpoint(session, run_id, attempt, body.step, body.path)
        case Log():
            append_log(
                session,
                run_id,
                attempt,
                level=body.level,
                message=body.message,
                emitter=event.emitter,
                time=event.time,
            )
        case Finished():
            error = None if body.error is None else body.error.replace("\x00", "")
            runs.record_finished(session, run_id, attempt, body.outcome, body.is_retryable, error)
        case Metrics() | Samples() | Alarm():
            pass
