"""Hands a run's attempt to Ray: load in a transaction, submit outside, confirm in a transaction.

The worker's starter is made last, once Ray has answered that it has no such job. Each part may be repeated by another
process after a crash: the attempt's submission id is fixed, and Ray knows a job by it. Who has lost the lease changes
nothing.
"""

import json
import logging
import shlex
from uuid import UUID

from sqlalchemy.orm import Session

from backend import queue
from backend.auth.workers import repository as workers
from backend.auth.workers.service import issue_starter
from backend.clusters.code import stored
from backend.db import Database, after_commit
from backend.launcher import turn
from backend.launcher.connect import Connect, Target
from backend.launcher.jobs import JobServer, JobState, RefusedError, StartingError, Submission, UnreachableError
from backend.launcher.room import BusyError, NoRoomError, check_room
from backend.models import Attempt, Cluster, Run
from backend.queue import Lease
from backend.runs import attempts, repository
from backend.runs.state import ENDED, Status, explain, transition
from backend.runs.stored import current
from backend.settings import Settings
from backend.telemetry.notices import append_log
from contract.config.needs import NO_NEEDS, Needs, needs
from contract.telemetry.events import ASSIGNMENT_VARIABLE, WorkerAssignment

logger = logging.getLogger(__name__)

WAIT_FOR_PLACE_S = 30.0
NUM_LOOKED_AT_OFTEN = 20
WAIT_FOR_GPUS_S = 15.0
WAIT_FOR_RAY_S = 0.5
MAX_BACKOFF_S = 15.0


def dispatch(database: Database, settings: Settings, connect: Connect, lease: Lease) -> None:
    """Does one leased `dispatch`."""
    with database.transaction() as session:
        loaded = _load(database, session, lease)
    if loaded is None:
        return
    target, needed = loaded
    submission_id = f"{lease.run_id}-{lease.attempt}"
    try:
        with connect(target, True) as server:
            is_there = _submit_once(database, settings, server, lease, submission_id, target.name, needed)
    except StartingError as error:
        _try_later(database, lease, str(error), WAIT_FOR_RAY_S)
    except UnreachableError as error:
        delay_s = min(MAX_BACKOFF_S, 2.0 ** min(lease.num_tries, 10))
        reason = f"Cluster {target.name} cannot be reached: {error}. Trying again."
        _try_later(database, lease, reason, delay_s)
    except BusyError as error:
        _try_later(database, lease, str(error), WAIT_FOR_GPUS_S)
    except (RefusedError, NoRoomError) as error:
        _give_up(database, lease, str(error))
    else:
        if is_there:
            _confirm(database, connect, lease, target, submission_id)


def _submit_once(
    database: Database,
    settings: Settings,
    server: JobServer,
    lease: Lease,
    submission_id: str,
    cluster: str,
    needed: Needs,
) -> bool:
    """Whether Ray has the job now; False when the lease has passed to somebody else meanwhile.

    Raises NoRoomError or BusyError where the cluster has not what the run needs.
    """
    if server.get(submission_id).state is JobState.MISSING:
        if needed.gpus_per_node:
            check_room(cluster, needed, server.nodes())
        with database.transaction() as session:
            submission = _submission(session, settings, lease)
        if submission is None:
            return False
        server.submit(submission)
    return True


def _load(database: Database, session: Session, lease: Lease) -> tuple[Target, Needs] | None:
    """Where to submit, and what has to be there; None when there is nothing to do, or not yet."""
    run = repository.get_locked(session, lease.run_id)
    if run is None or not queue.is_held(session, lease):
        return None
    if run.status == Status.QUEUED and not run.is_stop_requested and not _take_place(database, session, run, lease):
        return None
    if run.status != Status.DISPATCHING or run.is_stop_requested or lease.attempt != run.current_attempt:
        queue.finish(session, lease)
        return None
    attempt = repository.get_attempt(session, run.id, lease.attempt)
    config = current(attempt.config) if attempt is not None else None
    return Target(run.cluster.name, run.cluster.address), needs(config) if config is not None else NO_NEEDS


def _take_place(database: Database, session: Session, run: Run, lease: Lease) -> bool:
    """Begins the first attempt when it is the run's turn; otherwise it goes on waiting. Others whose turn it is are
    woken."""
    cluster = repository.lock_cluster(session, run.cluster_id)
    wait = turn.why_not_yet(session, run, cluster)
    if wait is None:
        attempts.begin(session, run, f"Handing the run to cluster {cluster.name}.")
    else:
        explain(session, run, f"Waits for a place on cluster {cluster.name}: {wait.reason}.")
        # A place that becomes free wakes whose turn it is; this look is for what nobody tells, and the first find it.
        queue.postpone(session, lease, WAIT_FOR_PLACE_S * (1 + wait.num_ahead / NUM_LOOKED_AT_OFTEN))
    if others := turn.list_next(session, cluster):
        after_commit(session, "wake others", lambda: _wake(database, others))
    return wait is None


def _wake(database: Database, run_ids: list[UUID]) -> None:
    """In a transaction of its own: whoever holds one of their rows may be waiting for the cluster's."""
    with database.transaction() as session:
        queue.wake(session, run_ids)


def _submission(session: Session, settings: Settings, lease: Lease) -> Submission | None:
    """The job, with a new starter in place of all tokens that the run had; the lease begins anew."""
    run = repository.get_locked(session, lease.run_id)
    attempt = repository.get_attempt(session, lease.run_id, lease.attempt)
    if run is None or attempt is None or not queue.renew(session, lease, settings.lease_s):
        return None
    workers.retire(session, run.id, settings.drain_s)
    return _job(session, run, attempt, run.cluster)


def _job(session: Session, run: Run, attempt: Attempt, cluster: Cluster) -> Submission:
    assignment = WorkerAssignment(
        run_id=run.id,
        run_name=run.name,
        attempt=attempt.number,
        api_url=cluster.api_url,
        starter=issue_starter(session, run.id, attempt.number),
        storage_dir=f"{cluster.storage_dir}/runs/{run.id}",
        cache_dir=f"{cluster.storage_dir}/cache",
        config_json=json.dumps(attempt.config),
        config_sha256=attempt.config_sha256,
        reward_modules=cluster.reward_modules,
    )
    return Submission(
        submission_id=attempt.submission_id,
        entrypoint=f"{shlex.quote(cluster.python)} -m workers.main",
        environment={ASSIGNMENT_VARIABLE: assignment.model_dump_json()},
        metadata={"run": str(run.id), "name": run.name, "attempt": str(attempt.number)},
        runtime_env=stored(cluster.code).runtime_env([cluster.storage_dir], cluster.data_dirs or []),
    )


def _try_later(database: Database, lease: Lease, reason: str, delay_s: float) -> None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        if run is not None and queue.postpone(session, lease, delay_s, reason):
            if run.status == Status.DISPATCHING and not run.is_stop_requested:
                explain(session, run, reason)
            queue.nudge(session, delay_s)


def _give_up(database: Database, lease: Lease, reason: str) -> None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        if run is None or not queue.finish(session, lease) or run.status != Status.DISPATCHING:
            return
        attempt = repository.get_attempt(session, run.id, lease.attempt)
        if attempt is not None:
            attempts.close_attempt(attempt, "failed", reason)
        transition(session, run, Status.FAILED, reason)


def _confirm(database: Database, connect: Connect, lease: Lease, target: Target, submission_id: str) -> None:
    with database.transaction() as session:
        run = repository.get_locked(session, lease.run_id)
        is_over = run is None or run.status in ENDED
        if run is not None and queue.finish(session, lease):
            append_log(
                session, run.id, lease.attempt, "info", f"Ray job {submission_id} is submitted to {target.name}."
            )
            if run.status == Status.DISPATCHING and not run.is_stop_requested:
                explain(session, run, "Ray has the job. Waiting for its worker to report.")
    if is_over:  # it ended while the job was being submitted
        _stop_stray(connect, target, submission_id)


def _stop_stray(connect: Connect, target: Target, submission_id: str) -> None:
    try:
        with connect(target, False) as server:
            server.stop(submission_id)
    except UnreachableError as error:  # its worker learns from its first report that the run is over
        logger.warning("a stray job may run", extra={"submission_id": submission_id, "error": str(error)})
