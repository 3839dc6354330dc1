"""The database and its transactions.

One request or task is one transaction, committed at its edge. Whatever tells others about a change (a Redis publish, a
Celery task) is a hook that runs after the commit, and never makes the request fail.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from sqlalchemy import create_engine, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from backend.settings import Settings

logger = logging.getLogger(__name__)

_AFTER_COMMIT = "foredeck.after_commit"


class CommitUnknownError(SQLAlchemyError):
    """The connection was lost while committing: the change may have been made or not."""


class Database:
    """A pool of connections and the one way to a transaction."""

    def __init__(self, settings: Settings) -> None:
        self._info = {"redis_url": settings.redis_url, "public_url": settings.public_url}
        self.engine: Engine = create_engine(
            settings.database_url,
            pool_size=settings.database_pool_size,
            max_overflow=0,
            pool_timeout=10,
            pool_pre_ping=True,
            pool_recycle=1800,
            connect_args={
                "connect_timeout": 5,
                "application_name": "foredeck",
                "options": "-c timezone=UTC -c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000",
            },
        )

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session that commits when the block ends well and rolls back when it raises; then runs the hooks."""
        with Session(self.engine, expire_on_commit=False, info=dict(self._info)) as session:
            yield session  # what it raises, closing the session rolls back
            _commit(session)
            _run_hooks(session)

    def ping(self) -> None:
        """Raises when PostgreSQL does not answer."""
        with self.engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        self.engine.dispose()


@cache
def shared(settings: Settings) -> Database:
    """One pool for all tasks of a process."""
    return Database(settings)


def _commit(session: Session) -> None:
    try:
        session.commit()
    except (OperationalError, InterfaceError) as error:
        if error.statement is None:  # no statement failed, but COMMIT itself
            raise CommitUnknownError(str(error.orig)) from error
        raise


def after_commit(session: Session, key: str, hook: Callable[[], object]) -> None:
    """Runs the hook once the session's transaction is durable; of several with the same key only the first."""
    session.info.setdefault(_AFTER_COMMIT, {}).setdefault(key, hook)


def _run_hooks(session: Session) -> None:
    for key, hook in session.info.pop(_AFTER_COMMIT, {}).items():
        try:
            hook()
        except Exception as error:  # the change is durable: a lost nudge costs seconds, an error here would deny it
            logger.warning("after-commit hook failed", extra={"hook": key, "error": str(error)})
