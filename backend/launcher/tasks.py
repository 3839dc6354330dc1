"""The launcher as Celery tasks. What they need is loaded with the first one: beat only knows their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery import Celery

from backend.settings import Settings

if TYPE_CHECKING:
    from backend.db import Database


def register(app: Celery, settings: Settings) -> None:
    """Gives the app its tasks. They carry no arguments: what is to be done stands in Postgres."""

    def database() -> Database:
        from backend.db import shared  # noqa: PLC0415

        return shared(settings)

    def dispatch() -> None:
        from backend.launcher import service  # noqa: PLC0415

        service.work_off(database(), settings)

    def reconcile() -> None:
        from backend.launcher import service  # noqa: PLC0415

        # Half an interval: of ticks that piled up only one counts.
        service.reconcile(database(), settings, settings.reconcile_interval_s / 2)

    for function in (dispatch, reconcile):
        app.task(function, name=function.__name__)
