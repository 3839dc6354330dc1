"""Stands in for Celery. Beat and worker need Redis; while nobody has reconciled for a while, the API process does."""

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from backend.db import Database
from backend.launcher import service
from backend.settings import Settings

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""In intervals: how long nobody may have reconciled before this process does."""


class Fallback:
    """A thread that sleeps nearly always.

    Args:
        job: does the work of a round and says that it did, unless somebody began one less than so many seconds ago;
            reconciling, when none is given.
    """

    def __init__(self, database: Database, settings: Settings, job: Callable[[float], bool] | None = None) -> None:
        self._database, self._settings = database, settings
        self._job = job or self._reconcile
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconcile-fallback", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        interval_s = self._settings.reconcile_interval_s
        while not self._is_stopping.wait(interval_s):
            try:
                if self._job(PATIENCE * interval_s):
                    logger.info("stood in for Celery")
            except SQLAlchemyError as error:
                logger.warning("cannot stand in for Celery: PostgreSQL does not answer", extra={"error": str(error)})
            except Exception:
                logger.exception("standing in for Celery failed")

    def _reconcile(self, at_least_s: float) -> bool:
        return service.reconcile(self._database, self._settings, at_least_s)
