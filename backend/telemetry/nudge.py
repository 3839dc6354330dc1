"""Wakes live streams through Redis pub/sub. A lost nudge costs a second, for the streams also poll."""

import logging
import os
import threading
import time

import redis

CHANNEL = "foredeck:notice"
_REST_S = 1.0
_TIMEOUT_S = 0.25

_log = logging.getLogger(__name__)


class Nudger:
    """Publishes to Redis and never fails: an outage is logged once, and each try in it is followed by a rest."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=_TIMEOUT_S, socket_timeout=_TIMEOUT_S, retry=None, decode_responses=True
        )
        self._is_down = False
        self._rest_until = 0.0

    def nudge(self) -> None:
        """Wake every stream of every API process."""
        if time.monotonic() < self._rest_until:
            return
        try:
            self._redis.publish(CHANNEL, "")
        except (redis.RedisError, OSError) as error:
            self._rest_until = time.monotonic() + _REST_S
            if not self._is_down:
                _log.warning("Redis does not answer (%s). Live streams fall back to polling.", error)
            self._is_down = True
        else:
            if self._is_down:
                _log.info("Redis answers again.")
            self._is_down = False

    def close(self) -> None:
        """Give the connections back."""
        self._redis.close()


_nudgers: dict[str, Nudger] = {}
_lock = threading.Lock()


def nudge(redis_url: str | None = None) -> None:
    """Wake the live streams, by the given Redis or else by that of the environment; without one they poll."""
    url = redis_url or os.environ.get("REDIS_URL")
    if url:
        with _lock:
            nudger = _nudgers.get(url) or _nudgers.setdefault(url, Nudger(url))
        nudger.nudge()
