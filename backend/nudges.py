"""Nudges for the Celery workers: messages that say no more than that there may be work."""

import logging
import threading
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue

logger = logging.getLogger(__name__)


class Sender:
    """Sends to one broker from a thread of its own: no request and no task ever waits for Redis."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._waiting: SimpleQueue[tuple[str, float]] = SimpleQueue()
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="nudges", daemon=True)
        self._thread.start()

    def send(self, task: str, delay_s: float = 0) -> None:
        """Returns at once; nobody learns whether the message arrived."""
        self._waiting.put((task, delay_s))

    def _run(self) -> None:
        from backend.celery_app import configured  # noqa: PLC0415 (Celery takes a second to load: not in a request)

        app = configured(self._redis_url)
        while True:
            task, delay_s = self._waiting.get()
            try:
                app.send_task(task, countdown=delay_s or None, retry=False, expires=60 + delay_s)
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
    """The process's one sender to this broker."""
    return Sender(redis_url)
