"""Celery: nudges that carry nothing but a task's name, and the clock of the reconciler.

Postgres is the truth. A message that is lost, late or delivered twice changes nothing but how soon something is done.

    celery -A backend.celery_app worker --pool threads --concurrency 4
    celery -A backend.celery_app beat --schedule FILE
"""

import warnings
from functools import cache

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging

from backend import logs
from backend.broker import configured
from backend.launcher.tasks import register
from backend.settings import Settings, load
from backend.webhooks import tasks as webhooks
from backend.webhooks.events import TASK as DELIVER_WEBHOOKS


def make_app(settings: Settings) -> Celery:
    """The app of worker and beat, with its tasks and its clock."""
    # Celery warns root about pickled messages. Only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    setup_logging.connect(lambda **_: logs.configure(settings), weak=False)
    app = configured(settings.redis_url)
    app.set_current()
    register(app, settings)
    webhooks.register(app, settings)
    interval_s = settings.reconcile_interval_s
    app.conf.beat_schedule = {
        name: {"task": name, "schedule": interval_s, "options": {"expires": interval_s}}
        for name in ("reconcile", DELIVER_WEBHOOKS)
    }
    app.conf.beat_max_loop_interval = min(5.0, interval_s)
    return app


@cache
def _app() -> Celery:
    return make_app(load())


def __getattr__(name: str) -> Celery:
    """`celery -A backend.celery_app`: the app is made when it is asked for, so that importing reads no environment."""
    if name == "app":
        return _app()
    raise AttributeError(name)
