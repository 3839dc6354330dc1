"""The threads of a process that deliver, as many as there is work for, up to a limit."""

import logging
import threading
import time

from sqlalchemy.exc import SQLAlchemyError

from backend import queue
from backend.db import Database
from backend.settings import Settings
from backend.webhooks.delivery import Courier

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 8
"""Requests of one process. Each is at another receiver."""
PERIODIC = "webhooks"


class Deliverer:
    """Woken, it has a thread look for work; each that finds some has another one look while it waits for the answer.
    Whoever wakes it waits for nothing."""

    def __init__(self, database: Database, settings: Settings, courier: Courier | None = None) -> None:
        self._database, self._interval_s = database, settings.reconcile_interval_s
        self._courier = courier or Courier(database, settings)
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._is_stopping = False

    def wake(self) -> None:
        with self._lock:
            if self._is_stopping or len(self._threads) >= MAX_AT_ONCE:
                return
            thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
            self._threads.add(thread)
            thread.start()

    def tick(self) -> None:
        """As the clock's task: notes that somebody looks after what is due, and does."""
        self.stand_in(self._interval_s / 2)
        self.wake()

    def stand_in(self, at_least_s: float) -> bool:
        """Looks after what is due, unless somebody began to less than `at_least_s` ago."""
        with self._database.transaction() as session:
            is_turn = queue.begin_periodic(session, PERIODIC, at_least_s)
        if is_turn:
            self.wake()
        return is_turn

    def stop(self, timeout_s: float = 2.0) -> None:
        """Begins nothing new. What is cut off is sent again by another process."""
        with self._lock:
            self._is_stopping = True
            threads = list(self._threads)
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        try:
            while not self._is_stopping and self._courier.deliver_next(self.wake):
                pass
        except SQLAlchemyError as error:
            logger.warning("cannot deliver webhooks: PostgreSQL does not answer", extra={"error": str(error)})
        except Exception:
            logger.exception("delivering webhooks failed")
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
