"""Celery: nudges that carry nothing but a task's name, and the clock of the reconciler.

Postgres is the truth. A message that is lost, late or delivered twice changes nothing but how soon something is done.

    celery -A backend.celery_app worker --pool threads --concurrency 4
    celery -A backend.celery_app beat --schedule FILE
"""

import logging
import threading
import warnings
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue

from celery import Celery
from celery.exceptions import SecurityWarning

from backend import logs
from backend.db import Database
from backend.launcher.tasks import register
from backend.settings import Settings, load

logger = logging.getLogger(__name__)


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
    # Celery warns root about pickled messages. Only JSON is accepted here.
    warnings.filterwarnings("ignore", category=SecurityWarning)
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
    """Sends nudges to one broker from a thread of its own: no request and no task ever waits for Redis."""

    def __init__(self, redis_url: str) -> None:
        self._app = _configured(redis_url)
        self._waiting: SimpleQueue[tuple[str, float]] = SimpleQueue()
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="nudges", daemon=True)
        self._thread.start()

    def send(self, task: str, delay_s: float = 0) -> None:
        """Returns at once; nobody learns whether the message arrived."""
        self._waiting.put((task, delay_s))

    def _run(self) -> None:
        while True:
            task, delay_s = self._waiting.get()
            try:
                self._app.send_task(task, countdown=delay_s or None, retry=False, expires=60 + delay_s)
            except Exception as error:  # whatever it is, the reconciler finds the work
                self._note(is_down=True, error=str(error))
                self._forget_waiting()
            else:
                self._note(is_down=False)

    def _forget_waiting(self) -> None:
        """What has piled up meanwhile says the same again."""
        with suppress(Empty):
            while True:
                self._waiting.get_nowait()

    def _note(self, is_down: bool, error: str = "") -> None:
        if is_down and not self._is_down:
            logger.warning("Redis takes no nudges: work waits for the reconciler", extra={"error": error})
        if self._is_down and not is_down:
            logger.info("Redis takes nudges again")
        self._is_down = is_down


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
