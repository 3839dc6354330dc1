"""Stands in for Celery. Beat and worker need Redis; while nobody has reconciled for a while, the API process does."""

import logging
import threading

from sqlalchemy.exc import SQLAlchemyError

from backend.db import Database
from backend.launcher import service
from backend.settings import Settings

logger = logging.getLogger(__name__)

PATIENCE = 2.0
"""In intervals: how long nobody may have reconciled before this process does."""


class Fallback:
    """A thread that sleeps nearly always."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
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
                if service.reconcile(self._database, self._settings, PATIENCE * interval_s):
                    logger.info("reconciled in place of Celery")
            except SQLAlchemyError as error:
                logger.warning("cannot reconcile: PostgreSQL does not answer", extra={"error": str(error)})
            except Exception:
                logger.exception("reconciling failed")
