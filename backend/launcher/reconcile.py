"""Looks at every live run and at its Ray job, and draws the conclusions."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.orm import Session

from backend.db import Database
from backend.launcher import repository
from backend.launcher.connect import Connect, Target
from backend.launcher.jobs import Job, JobState, NotStartedError, UnreachableError
from backend.launcher.repository import LiveRun
from backend.launcher.verdict import Action, Look, Verdict, judge
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
    log_tail: Sequence[str] = ()


def look_at_live_runs(database: Database, settings: Settings, connect: Connect) -> None:
    """One round."""
    with database.transaction() as session:
        live = repository.list_live(session)
    unreachable: dict[Target, str] = {}
    for run in live:
        answer = _ask(connect, run, unreachable)
        verdict = judge(_look(run, answer, settings))
        if verdict.action is not Action.KEEP or verdict.reason:
            with database.transaction() as session:
                _apply(session, run, verdict, answer)


def _ask(connect: Connect, run: LiveRun, unreachable: dict[Target, str]) -> _Answer:
    """Asks about one job; a cluster that did not answer about one is not asked about the next."""
    if run.target in unreachable:
        return _Answer(None, unreachable[run.target])
    try:
        with connect(run.target, False) as server:
            job = server.get(run.submission_id)
            is_dead = job.state in {JobState.FAILED, JobState.STOPPED, JobState.SUCCEEDED}
            return _Answer(job, log_tail=server.log_tail(run.submission_id, NUM_LOG_LINES) if is_dead else ())
    except NotStartedError:
        return _Answer(Job(JobState.MISSING))
    except UnreachableError as error:
        unreachable[run.target] = str(error)
        return _Answer(None, str(error))


def _look(run: LiveRun, answer: _Answer, settings: Settings) -> Look:
    return Look(
        status=run.status,
        silent_s=run.silent_s,
        job=answer.job,
        problem=answer.problem,
        now=datetime.now(UTC),
        heartbeat_timeout_s=settings.heartbeat_timeout_s,
        finish_grace_s=settings.finish_grace_s,
        api_url=run.api_url,
    )


def _apply(session: Session, seen: LiveRun, verdict: Verdict, answer: _Answer) -> None:
    """Unless the run has moved on since it was looked at."""
    run = runs.get_locked(session, seen.id)
    if run is None or (run.status, run.current_attempt) != (seen.status, seen.attempt):
        return
    match verdict.action:
        case Action.KEEP:
            if not run.is_stop_requested:
                explain(session, run, verdict.reason)
        case Action.FOUND:
            transition(session, run, Status.RUNNING, verdict.reason)
        case Action.LOSE:
            if repository.is_still_silent(session, run.id, seen.silent_s):
                transition(session, run, Status.LOST, verdict.reason)
        case Action.BURY:
            _store_log(session, run.id, run.current_attempt, answer.log_tail)
            attempts.judge_dead(session, run, verdict.reason)
        case Action.FAIL:
            _store_log(session, run.id, run.current_attempt, answer.log_tail)
            attempts.judge_silent_end(session, run, verdict.reason)


def _store_log(session: Session, run_id: UUID, attempt: int, lines: Sequence[str]) -> None:
    for line in lines:
        append_log(session, run_id, attempt, "error", line[:20_000], emitter="ray/0")
