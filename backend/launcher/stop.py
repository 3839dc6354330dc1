"""Ends a run's Ray job, once its worker has had its time to stop by itself."""

from backend import queue
from backend.db import Database
from backend.launcher import repository as launcher
from backend.launcher.connect import Connect, Target
from backend.launcher.dispatch import MAX_BACKOFF_S
from backend.launcher.jobs import GOING, Job, JobState, NotStartedError, UnreachableError
from backend.queue import Lease
from backend.runs import attempts, repository
from backend.runs.state import LIVE, explain
from backend.settings import Settings

LOOK_AGAIN_S = 1.0
MIN_TRIES = 3
"""Before a run is given up whose worker is silent and whose cluster does not answer."""


def stop(database: Database, settings: Settings, connect: Connect, lease: Lease) -> None:
    """Does one leased `stop`; it comes back until the job is over."""
    loaded = _load(database, lease)
    if loaded is None:
        return
    target, submission_id = loaded
    try:
        job = _stop_job(connect, target, submission_id)
    except UnreachableError as error:
        if not _abandon(database, lease, target, settings.heartbeat_timeout_s):
            delay_s = min(MAX_BACKOFF_S, 2.0 ** min(lease.num_tries, 10))
            _look_again(database, lease, f"Stopping: cluster {target.name} cannot be reached: {error}.", delay_s)
    else:
        if job.state in GOING:
            _look_again(database, lease, "Stopping: Ray ends the job.", LOOK_AGAIN_S)
        else:
            _end(database, lease)


def _load(database: Database, lease: Lease) -> tuple[Target, str] | None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        if run is None or not queue.is_held(session, lease):
            return None
        if run.status not in LIVE:
            queue.finish(session, lease)
            return None
        if queue.is_leased(session, "dispatch", run.id):  # its job may be submitted at this very moment
            queue.postpone(session, lease, LOOK_AGAIN_S)
            queue.nudge(session, LOOK_AGAIN_S)
            return None
        queue.forget(session, run.id, "dispatch")
        return Target(run.cluster.name, run.cluster.address), f"{run.id}-{run.current_attempt}"


def _stop_job(connect: Connect, target: Target, submission_id: str) -> Job:
    try:
        with connect(target, False) as server:
            server.stop(submission_id)
            return server.get(submission_id)
    except NotStartedError:  # without Ray there is no job
        return Job(JobState.MISSING)


def _look_again(database: Database, lease: Lease, reason: str, delay_s: float) -> None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        if run is not None and queue.postpone(session, lease, delay_s, reason):
            explain(session, run, reason)
            queue.nudge(session, delay_s)


def _abandon(database: Database, lease: Lease, target: Target, patience_s: float) -> bool:
    """Ends the run without Ray's word, when neither worker nor cluster has been heard for a while."""
    if lease.num_tries < MIN_TRIES:
        return False
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        is_due = run is not None and run.status in LIVE and launcher.get_silent_s(session, run.id) > patience_s
        if run is None or not is_due or not queue.finish(session, lease):
            return False
        why = (
            f"Cluster {target.name} cannot be reached: its job may still run there, and is told to end at its first "
            "report."
        )
        attempts.abandon(session, run, why)
    return True


def _end(database: Database, lease: Lease) -> None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        if run is not None and queue.finish(session, lease) and run.status in LIVE:
            attempts.judge_dead(session, run, "Stopped.")
