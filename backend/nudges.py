"""Nudges through Redis: to Celery workers that there may be work, to live streams that there may be news.

A lost one costs seconds at most: the reconciler looks for work, and streams poll.
"""

import logging
import threading
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

import redis

if TYPE_CHECKING:
    from celery import Celery

logger = logging.getLogger(__name__)

CHANNEL = "foredeck:notice"


class _Nudge(NamedTuple):
    task: str
    delay_s: float


_NEWS = _Nudge("", 0)


class Sender:
    """Sends to one broker from a thread of its own: no request and no task ever waits for Redis."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._waiting: SimpleQueue[_Nudge] = SimpleQueue()
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="nudges", daemon=True)
        self._thread.start()

    def send(self, task: str, delay_s: float = 0) -> None:
        """Has a Celery worker start a task. Returns at once; nobody learns whether the message arrived."""
        self._waiting.put(_Nudge(task, delay_s))

    def wake_streams(self) -> None:
        """Has every stream of every API process look for news. Returns at once."""
        self._waiting.put(_NEWS)

    def _run(self) -> None:
        with redis.Redis.from_url(self._redis_url, socket_connect_timeout=0.5, socket_timeout=5, retry=None) as client:
            while True:
                nudge = self._waiting.get()
                try:
                    self._deliver(client, nudge)
                except Exception as error:  # whatever it is, the reconciler finds the work and streams poll
                    self._note(is_down=True, error=str(error))
                    self._forget_waiting()
                else:
                    self._note(is_down=False)

    def _deliver(self, client: redis.Redis, nudge: "_Nudge") -> None:
        if nudge is _NEWS:
            client.publish(CHANNEL, "")
        else:
            expires_s = 60 + nudge.delay_s
            _celery(self._redis_url).send_task(
                nudge.task, countdown=nudge.delay_s or None, retry=False, expires=expires_s
            )

    def _forget_waiting(self) -> None:
        """What has piled up meanwhile says the same again."""
        with suppress(Empty):
            while True:
                self._waiting.get_nowait()

    def _note(self, is_down: bool, error: str = "") -> None:
        if is_down and not self._is_down:
            logger.warning(
                "Redis takes no nudges: work waits for the reconciler, and live streams poll", extra={"error": error}
            )
        if self._is_down and not is_down:
            logger.info("Redis takes nudges again")
        self._is_down = is_down


@cache
def _celery(redis_url: str) -> "Celery":
    from backend.broker import configured  # noqa: PLC0415 (Celery takes a second to load: not in a request)

    return configured(redis_url)


@cache
def sender(redis_url: str) -> Sender:
    """The process's one sender to this broker."""
    return Sender(redis_url)
