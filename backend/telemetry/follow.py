"""The live streams: notices of many runs in one, and one run's log."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.runs import repository as runs
from backend.runs.state import ENDED
from backend.telemetry import repository
from backend.telemetry.hub import Closed, Hub, Overrun, Subscription
from backend.telemetry.repository import NoticeRow
from backend.telemetry.schemas import LogLineRead, LogQuery
from backend.telemetry.sse import KEEP_ALIVE, RETRY, encode

KEEP_ALIVE_INTERVAL_S = 15.0
_PAGE = 500


async def while_welcome(
    events: AsyncGenerator[bytes, None], hub: Hub, is_welcome: Callable[[Session], bool]
) -> AsyncGenerator[bytes, None]:
    """The stream until its caller's token or session has ended, which is looked at about every 15 s."""
    looked_at = time.monotonic()
    async with aclosing(events):
        async for chunk in events:
            if time.monotonic() - looked_at >= KEEP_ALIVE_INTERVAL_S:
                looked_at = time.monotonic()
                if not await _allows(hub, is_welcome):
                    return
            yield chunk


async def _allows(hub: Hub, is_welcome: Callable[[Session], bool]) -> bool:
    try:
        return await hub.query(is_welcome)
    except SQLAlchemyError:  # with the database down nothing is streamed, either
        return True


async def follow_notices(
    hub: Hub, run_ids: frozenset[UUID] | None, start: int | None, project_ids: frozenset[UUID] | None = None
) -> AsyncGenerator[bytes, None]:
    """Notices of these runs in these projects (None: of all) after id `start` without loss or repetition; from now on
    when it is None.

    `open` carries the id from which the stream is live, and no data. `resync` says that notices were lost: load
    everything anew, and go on listening.
    """
    yield RETRY
    async with hub.subscribe(run_ids, project_ids=project_ids) as subscription:
        sent = subscription.position
        if start is not None and not await hub.query(lambda session: _has_history(session, start)):
            yield encode("resync", {})
        elif start is not None:
            sent = max(sent, start)  # another process may have shown the client more than this one has read
            async for chunk in _replay(hub, subscription, start):
                yield chunk
        yield encode("open", {}, sent)
        async for chunk in _live(subscription, sent):
            yield chunk


def _has_history(session: Session, start: int) -> bool:
    oldest, newest = repository.notice_range(session)
    return oldest is not None and newest is not None and oldest <= start <= newest


async def _replay(hub: Hub, subscription: Subscription, start: int) -> AsyncGenerator[bytes, None]:
    """Notices above `start` up to where the subscription takes over."""
    while True:
        notices = await hub.query(
            partial(
                repository.list_notices,
                after=start,
                limit=_PAGE,
                up_to=subscription.position,
                run_ids=subscription.run_ids,
                project_ids=subscription.project_ids,
            )
        )
        yield b"".join(map(_encoded, notices))
        if len(notices) < _PAGE:
            return
        start = notices[-1].id


async def _live(subscription: Subscription, sent: int) -> AsyncGenerator[bytes, None]:
    while True:
        try:
            notices = await subscription.take(KEEP_ALIVE_INTERVAL_S)
        except Overrun:
            yield encode("resync", {})
        except Closed:
            return
        else:
            yield b"".join(_encoded(notice) for notice in notices if notice.id > sent) or KEEP_ALIVE


def _encoded(notice: NoticeRow) -> bytes:
    return encode(notice.kind, {"run_id": str(notice.run_id), **notice.body}, notice.id)


async def follow_log(hub: Hub, run_id: UUID, start: int) -> AsyncGenerator[bytes, None]:
    """Lines with an id above `start`, each an event `log`; then `end` once the run has ended and all is sent."""
    yield RETRY
    async with hub.subscribe(frozenset({run_id}), frozenset({"log", "run"})) as subscription:
        while True:
            # The status is read before the lines, so that lines of the same commit as the end are not missed.
            status, lines = await hub.query(partial(_status_and_lines, run_id=run_id, after=start))
            if lines:
                yield b"".join(encode("log", line.model_dump(mode="json"), line.id) for line in lines)
                start = lines[-1].id
            elif status is None or status in ENDED:
                yield encode("end", {"status": status})
                return
            else:
                try:
                    if not await subscription.take(KEEP_ALIVE_INTERVAL_S):
                        yield KEEP_ALIVE
                except Overrun:
                    continue
                except Closed:
                    return


def _status_and_lines(session: Session, run_id: UUID, after: int) -> tuple[str | None, list[LogLineRead]]:
    status = runs.get_status(session, run_id)
    lines = repository.list_log_lines(session, run_id, LogQuery(after=after, limit=_PAGE))
    return status, [LogLineRead.model_validate(line) for line in lines]
