"""Celery: nudges that carry nothing but a task's name, and the clock of the reconciler.

Postgres is the truth. A message that is lost, late or delivered twice changes nothing but how soon something is done.

    celery -A backend.celery_app worker --pool threads --concurrency 4
    celery -A backend.celery_app beat --schedule FILE
"""

import threading
import time
from functools import cache

from celery import Celery

from backend import logs
from backend.db import Database
from backend.launcher.tasks import register
from backend.settings import Settings, load

REST_S = 1.0
"""After a failed send nothing is sent for so long: with Redis down, requests must not wait for it one by one."""


def _configured(redis_url: str) -> Celery:
    app = Celery("foredeck", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_default_queue="foredeck",
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_connect_timeout": 0.5, "socket_timeout": 5, "visibility_timeout": 300},
        timezone="UTC",
    )
    return app


def make_app(settings: Settings) -> Celery:
    """The app of worker and beat, with its tasks and its clock."""
    logs.configure(settings)
    app = _configured(settings.redis_url)
    app.set_current()
    register(app, Database(settings), settings)
    interval_s = settings.reconcile_interval_s
    app.conf.beat_schedule = {
        "reconcile": {"task": "reconcile", "schedule": interval_s, "options": {"expires": interval_s}}
    }
    app.conf.beat_max_loop_interval = min(5.0, interval_s)
    return app


class Sender:
    """Sends nudges from any process to one broker."""

    def __init__(self, redis_url: str) -> None:
        self._app = _configured(redis_url)
        self._rest_until = 0.0
        self._lock = threading.Lock()

    def send(self, task: str, delay_s: float) -> None:
        """Raises when the broker does not answer."""
        with self._lock:
            if time.monotonic() < self._rest_until:
                return
        try:
            self._app.send_task(task, countdown=delay_s or None, retry=False, expires=60 + delay_s)
        except Exception:
            with self._lock:
                self._rest_until = time.monotonic() + REST_S
            raise


@cache
def sender(redis_url: str) -> Sender:
    return Sender(redis_url)


@cache
def _app() -> Celery:
    return make_app(load())


def __getattr__(name: str) -> Celery:
    """`celery -A backend.celery_app`: the app is made when it is asked for, so that importing reads no environment."""
    if name == "app":
        return _app()
    raise AttributeError(name)
