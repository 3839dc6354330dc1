"""Buckets of requests: what is taken out comes back evenly. One arithmetic, in Python for one process, and in Lua for
all that share a Redis."""

import threading
from collections import OrderedDict
from typing import NamedTuple

import redis

REMEMBERED_S = 3600
"""That a bucket exists says that its caller is known."""
MAX_LOCAL = 50_000
"""Buckets in memory, of about 300 bytes each; beyond that the ones that rest longest are forgotten."""
ROUNDING = 1e-6
_PREFIX = "foredeck:limit:"

_LUA = """
local now, limit, per_s = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local cost, need, must_exist = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local kept = redis.call('HMGET', KEYS[1], 'left', 'time')
local left, time = tonumber(kept[1] or ''), tonumber(kept[2] or '')
if not left and must_exist then return false end
left, time = left or limit, time or now
left = math.min(limit, left + math.max(0, now - time) * per_s)
local is_allowed = left >= need - 1e-6
if is_allowed then left = math.min(limit, math.max(0, left - cost)) end
left = string.format('%.9f', left)
redis.call('HSET', KEYS[1], 'left', left, 'time', string.format('%.6f', math.max(now, time)))
redis.call('EXPIRE', KEYS[1], ARGV[7])
return {is_allowed and 1 or 0, left}
"""


class Bucket(NamedTuple):
    """It holds so many requests at most, and so many come back a second."""

    key: str
    limit: int
    per_s: float


class LocalBuckets:
    """Of this process alone."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(
        self, bucket: Bucket, now: float, cost: float = 1, need: float = 1, must_exist: bool = False
    ) -> tuple[bool, float] | None:
        """Takes `cost` requests out of a bucket that holds `need`, at `now` in seconds; negative ones are put back.

        Returns (whether it held them, what is left), or None for a bucket that must exist and does not.
        """
        with self._lock:
            kept = self._kept.get(bucket.key)
            if kept is None and must_exist:
                return None
            left, time = kept or (float(bucket.limit), now)
            left = min(bucket.limit, left + max(0.0, now - time) * bucket.per_s)
            is_allowed = left >= need - ROUNDING
            if is_allowed:
                left = min(bucket.limit, max(0.0, left - cost))
            self._keep(bucket.key, left, max(now, time))
            return is_allowed, left

    def forget(self, key: str) -> None:
        with self._lock:
            self._kept.pop(key, None)

    def _keep(self, key: str, left: float, time: float) -> None:
        self._kept[key] = (left, time)
        self._kept.move_to_end(key)
        if len(self._kept) > MAX_LOCAL:
            self._kept.popitem(last=False)


class RedisBuckets:
    """The same, of all processes that share a Redis or Valkey. Raises redis.RedisError or OSError while it is down, or
    so slow that requests would be held up."""

    def __init__(self, redis_url: str, timeout_s: float = 0.25) -> None:
        limits = {"socket_connect_timeout": timeout_s, "socket_timeout": timeout_s}
        self._client = redis.Redis.from_url(redis_url, **limits, retry=None)
        self._take = self._client.register_script(_LUA)

    def take(
        self, bucket: Bucket, now: float, cost: float = 1, need: float = 1, must_exist: bool = False
    ) -> tuple[bool, float] | None:
        key, limit, per_s = bucket
        arguments: list[str | float] = [repr(now), limit, repr(per_s), cost, need, int(must_exist), REMEMBERED_S]
        answer = self._take(keys=[_PREFIX + key], args=arguments)
        return None if answer is None else (bool(answer[0]), float(answer[1]))

    def forget(self, key: str) -> None:
        self._client.delete(_PREFIX + key)

    def close(self) -> None:
        self._client.close()
