"""The work that the end of a run with gates promises: to judge it."""

from typing import TYPE_CHECKING

from backend import queue
from backend.db import Database
from backend.gates import service
from backend.queue import Lease
from backend.runs import repository as runs
from backend.runs.state import ENDED

if TYPE_CHECKING:
    from backend.launcher.connect import Connect
    from backend.settings import Settings

MAX_TRIES = 5


def judge(database: Database, _: "Settings", __: "Connect", lease: Lease) -> None:
    """Does one leased `gates`, in one transaction. Judged twice is judged once: the verdict is no longer pending."""
    with database.transaction() as session:
        run = runs.get_locked(session, lease.run_id)
        if run is None or not queue.is_held(session, lease):
            return
        if run.status in ENDED and run.gates_verdict == "pending":
            work = service.evaluate_at_end if lease.num_tries <= MAX_TRIES else service.give_up
            work(session, run)
        queue.finish(session, lease)
