"""Looks at every live run and at its Ray job, and draws the conclusions."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from backend.db import Database
from backend.launcher import repository
from backend.launcher.connect import Connect
from backend.launcher.jobs import Job, JobState, NotStartedError, UnreachableError
from backend.launcher.repository import LiveRun
from backend.launcher.verdict import Action, Look, Verdict, judge
from backend.models import Run
from backend.runs import attempts
from backend.runs import repository as runs
from backend.runs.state import Status, explain, transition
from backend.settings import Settings
from backend.telemetry.notices import append_log

logger = logging.getLogger(__name__)

NUM_LOG_LINES = 50


@dataclass(frozen=True, slots=True)
class _Answer:
    """What Ray says about a run's job."""

    job: Job | None
    problem: str = ""


def look_at_live_runs(database: Database, settings: Settings, connect: Connect) -> None:
    """One round."""
    with database.transaction() as session:
        live = repository.list_live(session)
    for run in live:
        try:
            _look_at(database, settings, connect, run)
        except Exception:  # one run that cannot be judged must not keep the others waiting
            logger.exception("looking at a run failed", extra={"run_id": str(run.id)})


def _look_at(database: Database, settings: Settings, connect: Connect, run: LiveRun) -> None:
    answer = _ask(connect, run)
    verdict = judge(_look(run, answer, settings))
    if verdict.action is Action.END_JOB:
        _end_job(connect, run)
    elif verdict.action is not Action.KEEP or verdict.reason:
        log_tail = _last_words(connect, run, answer.job) if verdict.action is Action.BURY else ()
        with database.transaction() as session:
            _apply(session, run, verdict, log_tail)


def _ask(connect: Connect, run: LiveRun) -> _Answer:
    try:
        with connect(run.target, False) as server:
            return _Answer(server.get(run.submission_id))
    except NotStartedError:
        return _Answer(Job(JobState.GONE))
    except UnreachableError as error:
        return _Answer(None, str(error))


def _last_words(connect: Connect, run: LiveRun, job: Job | None) -> Sequence[str]:
    return _log_tail(connect, run) or (job.details if job is not None else ())


def _log_tail(connect: Connect, run: LiveRun) -> Sequence[str]:
    """The end of the job's output. Perhaps it died with its node: what is known of the job counts without it, and what
    is known of the cluster, too."""
    with suppress(UnreachableError), connect(run.target, False) as server, suppress(UnreachableError):
        return server.log_tail(run.submission_id, NUM_LOG_LINES)
    return ()


def _end_job(connect: Connect, run: LiveRun) -> None:
    with suppress(UnreachableError), connect(run.target, False) as server:
        server.stop(run.submission_id)


def _look(run: LiveRun, answer: _Answer, settings: Settings) -> Look:
    return Look(
        status=run.status,
        silent_s=run.silent_s,
        job=answer.job,
        problem=answer.problem,
        has_last_word=run.has_last_word,
        ended_s=run.ended_s,
        heartbeat_timeout_s=settings.heartbeat_timeout_s,
        finish_grace_s=settings.finish_grace_s,
        api_url=run.api_url,
    )


def _apply(session: Session, seen: LiveRun, verdict: Verdict, log_tail: Sequence[str]) -> None:
    """Unless the run has moved on since it was looked at."""
    run = runs.get_locked(session, seen.id)
    if run is None or (run.status, run.current_attempt) != (seen.status, seen.attempt):
        return
    match verdict.action:
        case Action.KEEP:
            _explain(session, run, verdict)
        case Action.AWAIT:
            repository.note_end(session, run.id, run.current_attempt)
            _explain(session, run, verdict)
        case Action.FOUND:
            transition(session, run, Status.RUNNING, verdict.reason)
        case Action.LOSE:
            if repository.is_still_silent(session, run.id, seen.silent_s):
                transition(session, run, Status.LOST, verdict.reason)
        case Action.BURY:
            _store_log(session, run.id, run.current_attempt, log_tail)
            attempts.judge_dead(session, run, verdict.reason)
        case Action.RESUME:
            attempts.interrupt(session, run, verdict.reason)


def _explain(session: Session, run: Run, verdict: Verdict) -> None:
    if not run.is_stop_requested:
        explain(session, run, verdict.reason)


def _store_log(session: Session, run_id: UUID, attempt: int, lines: Sequence[str]) -> None:
    for line in lines:
        append_log(session, run_id, attempt, "error", line[:20_000], emitter="ray/0")
