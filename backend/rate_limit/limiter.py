"""Who may send one more request.

A caller's bucket is made once the gate has let them in. Until then they count as a stranger of their address, and so do
those with a bad token: whoever tries tokens is refused before each of them costs a look into the database, while known
callers of the same address, as behind one proxy, go on.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import redis

from backend.rate_limit.buckets import Bucket, LocalBuckets, RedisBuckets
from backend.rate_limit.policy import Policies, Policy

logger = logging.getLogger(__name__)

RETRY_REDIS_S = 5.0
Answer = TypeVar("Answer")


class Verdict(NamedTuple):
    """By which policy, whether the request is let in, and how many are left."""

    policy: Policy
    is_allowed: bool
    left: float


@dataclass(frozen=True, slots=True)
class Visit:
    """What is known of a request before the gate has looked at it."""

    address: str
    caller: str
    """See backend.caller; empty where nobody is asked for."""
    kind: Literal["caller", "ingest", "probe", "login"]


class Limiter:
    """Buckets in Redis; while it is down, those of this process, so that no request fails for it."""

    def __init__(self, policies: Policies, redis_url: str, clock: Callable[[], float] = time.time) -> None:
        self.policies, self.clock = policies, clock
        self._shared, self._local = RedisBuckets(redis_url), LocalBuckets()
        self._down_until = 0.0

    def before(self, visit: Visit) -> Verdict:
        """Whether the request gets as far as the gate."""
        if visit.kind in {"login", "probe"}:
            return self._take(visit, visit.kind)
        if not visit.caller:
            return self._take(visit, "stranger")
        known = self._try(visit, visit.kind, must_exist=True)
        return known or self._take(visit, "stranger", cost=0)

    def after(self, visit: Visit, verdict: Verdict, is_admitted: bool, status: int) -> Verdict:
        """What is left, now that it is known who it was and how it went."""
        if visit.kind == "login":
            is_failed = 400 <= status < 500
            return verdict if is_failed else self._take(visit, "login", cost=-1, need=0)
        if not visit.caller:
            return verdict
        if is_admitted:
            return self._take(visit, visit.kind) if verdict.policy.name == "stranger" else verdict
        if status == 401:
            self._forget(visit)
            return self._take(visit, "stranger", need=0)
        return verdict

    def close(self) -> None:
        self._shared.close()

    def _take(self, visit: Visit, name: str, cost: float = 1, need: float = 1) -> Verdict:
        verdict = self._try(visit, name, cost, need)
        assert verdict is not None
        return verdict

    def _try(
        self, visit: Visit, name: str, cost: float = 1, need: float = 1, must_exist: bool = False
    ) -> Verdict | None:
        policy = self.policies[name]
        bucket = Bucket(_key(visit, name), policy.limit, policy.per_s)
        now = self.clock()
        taken = self._ask(lambda buckets: buckets.take(bucket, now, cost, need, must_exist), now)
        return None if taken is None else Verdict(policy, *taken)

    def _forget(self, visit: Visit) -> None:
        self._ask(lambda buckets: buckets.forget(_key(visit, visit.kind)), self.clock())

    def _ask(self, question: Callable[[RedisBuckets | LocalBuckets], Answer], now: float) -> Answer:
        if now >= self._down_until:
            try:
                answer = question(self._shared)
            except (redis.RedisError, OSError) as error:
                self._note_down(now, error)
            else:
                self._note_up()
                return answer
        return question(self._local)

    def _note_down(self, now: float, error: Exception) -> None:
        if self._down_until == 0:
            logger.warning("Redis counts no requests: each process counts its own", extra={"error": str(error)})
        self._down_until = now + RETRY_REDIS_S

    def _note_up(self) -> None:
        if self._down_until:
            logger.info("Redis counts requests again")
            self._down_until = 0.0


def _key(visit: Visit, name: str) -> str:
    return f"{name}:{visit.caller if name in {'caller', 'ingest'} else visit.address}"
