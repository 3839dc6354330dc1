"""The launcher as Celery tasks."""

from celery import Celery

from backend.db import Database
from backend.launcher import service
from backend.settings import Settings


def register(app: Celery, database: Database, settings: Settings) -> None:
    """Gives the app its tasks. They carry no arguments: what is to be done stands in Postgres."""

    def dispatch() -> None:
        service.work_off(database, settings)

    def reconcile() -> None:
        # Half an interval: of ticks that piled up only one counts.
        service.reconcile(database, settings, settings.reconcile_interval_s / 2)

    for function in (dispatch, reconcile):
        app.task(function, name=function.__name__)
