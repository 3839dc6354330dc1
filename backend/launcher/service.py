"""The launcher's three verbs. Each can be called at any time, from any process, at once with others."""

import logging
import time

from backend import queue
from backend.auth import repository as auth
from backend.auth.workers import service as workers
from backend.db import Database
from backend.gates.tasks import judge
from backend.idempotency import repository as idempotency
from backend.launcher.connect import Connect, connector, remembering
from backend.launcher.dispatch import dispatch
from backend.launcher.reconcile import look_at_live_runs
from backend.launcher.stop import stop
from backend.settings import Settings
from backend.telemetry import service as telemetry
from backend.webhooks import service as webhooks

logger = logging.getLogger(__name__)

TRIM_INTERVAL_S = 300.0
MAX_WORK = 200
MAX_WORK_S = 20.0
"""So that a round with many rows, or slow clusters, does not keep the next look at live runs waiting."""
_WORK = {"dispatch": dispatch, "stop": stop, "gates": judge}


def work_off(database: Database, settings: Settings, connect: Connect | None = None) -> int:
    """Does the work that is due now, or as much as one call may; how much it was. The rest is found by the next."""
    connect = connect or remembering(connector(settings))
    deadline, num_done = time.monotonic() + MAX_WORK_S, 0
    while num_done < MAX_WORK and time.monotonic() < deadline:
        with database.transaction() as session:
            lease = queue.claim(session, settings.lease_s)
        if lease is None:
            break
        try:
            _WORK[lease.kind](database, settings, connect, lease)
        except Exception:  # one bad row must not keep the others waiting; its lease runs out, and it is tried again
            logger.exception("work failed", extra={"kind": lease.kind, "run_id": str(lease.run_id)})
        num_done += 1
    return num_done


def reconcile(database: Database, settings: Settings, at_least_s: float, connect: Connect | None = None) -> bool:
    """One round over all that is due and all that lives, unless somebody began one less than `at_least_s` ago."""
    with database.transaction() as session:
        if not queue.begin_periodic(session, "reconcile", at_least_s):
            return False
    connect = remembering(connect or connector(settings))
    look_at_live_runs(database, settings, connect)
    work_off(database, settings, connect)
    trim(database, settings)
    return True


def trim(database: Database, settings: Settings) -> None:
    """Deletes what nobody needs any more, now and then."""
    with database.transaction() as session:
        if queue.begin_periodic(session, "trim", TRIM_INTERVAL_S):
            telemetry.trim(session)
            auth.delete_expired(session)
            webhooks.trim(session)
            idempotency.delete_expired(session)
            workers.trim(session, settings.drain_s)
