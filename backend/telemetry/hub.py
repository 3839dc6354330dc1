"""One reader of notices for all streams of a process: woken by Redis, polling every second whether Redis is up or not.

It runs on the event loop while there are subscriptions. A database connection is held for a query, never while waiting.
"""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

import redis
import redis.asyncio
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.db import Database
from backend.nudges import CHANNEL
from backend.telemetry import repository
from backend.telemetry.repository import NoticeRow

T = TypeVar("T")

POLL_INTERVAL_S = 1.0
MAX_WAITING = 10_000
_TICK_S = 0.25
_READ_LIMIT = 2000

_log = logging.getLogger(__name__)


class Overrun(Exception):
    """The subscriber was too slow and has lost notices."""


class Closed(Exception):
    """The server is shutting down."""


@dataclass(slots=True, eq=False)
class Subscription:
    """Notices of some runs, kinds and projects (None: of all) with an id above `position`, from when it began."""

    run_ids: frozenset[UUID] | None
    kinds: frozenset[str] | None
    position: int
    project_ids: frozenset[UUID] | None = None
    _waiting: deque[NoticeRow] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_overrun: bool = False
    _is_closed: bool = False

    def offer(self, notices: Iterable[NoticeRow]) -> None:
        """Called by the hub."""
        wanted = [
            notice
            for notice in notices
            if (self.run_ids is None or notice.run_id in self.run_ids)
            and (self.kinds is None or notice.kind in self.kinds)
            and (self.project_ids is None or notice.project_id in self.project_ids)
        ]
        if len(self._waiting) + len(wanted) > MAX_WAITING:
            self._waiting.clear()
            self._is_overrun = True
        elif not self._is_overrun:
            self._waiting.extend(wanted)
        if wanted:
            self._changed.set()

    def close(self) -> None:
        """Called by the hub."""
        self._is_closed = True
        self._changed.set()

    async def take(self, timeout_s: float) -> list[NoticeRow]:
        """What has come, waiting for the first; empty at the timeout. Raises Overrun or Closed."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return []
        self._changed.clear()
        if self._is_closed:
            self._changed.set()
            raise Closed
        if self._is_overrun:
            self._is_overrun = False
            raise Overrun
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


class Hub:
    """Reads new notices once and hands them to every subscription."""

    def __init__(self, database: Database, redis_url: str) -> None:
        self._database = database
        self._redis_url = redis_url
        self._subscriptions: set[Subscription] = set()
        self._wake = asyncio.Event()
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_running = False
        self._position = 0
        self._next_poll = 0.0

    async def query(self, read: Callable[[Session], T]) -> T:
        """Run a short read in a thread, in a transaction of its own."""
        return await asyncio.to_thread(self._read, read)

    def _read(self, read: Callable[[Session], T]) -> T:
        with self._database.transaction() as session:
            return read(session)

    @asynccontextmanager
    async def subscribe(
        self,
        run_ids: frozenset[UUID] | None,
        kinds: frozenset[str] | None = None,
        project_ids: frozenset[UUID] | None = None,
    ) -> AsyncIterator[Subscription]:
        """A subscription that begins now: `position` is the newest notice's id at this moment."""
        async with self._starting:
            if not self._is_running:
                self._position = (await self.query(repository.notice_range))[1] or 0
            subscription = Subscription(run_ids, kinds, self._position, project_ids)
            self._subscriptions.add(subscription)
            if not self._is_running:
                self._is_running = True
                self._task = asyncio.create_task(self._run())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            self._wake.set()

    def close(self) -> None:
        """End all streams, as at a shutdown."""
        for subscription in self._subscriptions:
            subscription.close()

    async def _run(self) -> None:
        listener = asyncio.create_task(self._listen())
        try:
            while self._subscriptions:
                await self._tick()
        finally:
            self._is_running = False
            while not listener.done():  # a cancellation can get lost in the client's own time limits
                listener.cancel()
                await asyncio.wait([listener], timeout=0.1)

    async def _tick(self) -> None:
        try:
            async with asyncio.timeout(_TICK_S):
                await self._wake.wait()
        except TimeoutError:
            pass
        is_woken = self._wake.is_set()  # it may have come together with the timeout
        self._wake.clear()
        if _is_server_stopping():
            self.close()
        if is_woken or time.monotonic() >= self._next_poll:
            await self._advance()

    async def _advance(self) -> None:
        self._next_poll = time.monotonic() + POLL_INTERVAL_S
        try:
            rows = await self.query(lambda session: repository.list_notices(session, self._position, _READ_LIMIT))
        except SQLAlchemyError as error:
            _log.warning("cannot read notices; trying again", extra={"error": str(error)})
            return
        if rows:
            self._position = rows[-1].id
            for subscription in self._subscriptions:
                subscription.offer(rows)
        if len(rows) == _READ_LIMIT:
            self._wake.set()

    async def _listen(self) -> None:
        is_down = False
        while self._is_running:
            try:
                async with (
                    redis.asyncio.from_url(self._redis_url, socket_connect_timeout=1) as client,
                    client.pubsub() as pubsub,
                ):
                    await pubsub.subscribe(CHANNEL)
                    is_down = False
                    while self._is_running:  # looked at again and again: a cancellation can get lost in the client
                        if await pubsub.get_message(timeout=POLL_INTERVAL_S) is not None:
                            self._wake.set()
            except (redis.RedisError, OSError) as error:
                if not is_down:
                    _log.warning("Redis does not answer; live streams poll", extra={"error": str(error)})
                is_down = True
            await asyncio.sleep(POLL_INTERVAL_S)


def _is_server_stopping() -> bool:
    """Whether uvicorn has been told to stop. It then waits for open responses, and ASGI has no word for it."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))


def hub_of(app: FastAPI) -> Hub:
    """The application's hub."""
    if not hasattr(app.state, "notice_hub"):
        app.state.notice_hub = Hub(app.state.database, app.state.settings.redis_url)
    hub: Hub = app.state.notice_hub
    return hub
