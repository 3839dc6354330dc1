"""The streams on an event loop with a real database and Redis, without HTTP around them."""

import asyncio
import itertools
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import redis.asyncio
from sqlalchemy import func, select, text, update

from backend.db import Database
from backend.models import Notice, Run
from backend.nudges import CHANNEL
from backend.telemetry import follow, hub, service
from backend.telemetry.follow import follow_log, follow_notices, while_welcome
from backend.telemetry.hub import Hub
from backend.telemetry.notices import append_log, publish

NOBODY = "redis://127.0.0.1:1/0"
T = TypeVar("T")


@dataclass(frozen=True)
class Received:
    event: str
    data: dict[str, Any]
    id: int | None


def parsed(chunk: bytes) -> list[Received]:
    found = []
    for frame in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":") and line)
        if "event" in fields:
            event_id = int(fields["id"]) if "id" in fields else None
            found.append(Received(fields["event"], json.loads(fields["data"]), event_id))
    return found


@asynccontextmanager
async def opened(stream: AsyncGenerator[bytes, None]) -> AsyncIterator[Callable[[Callable[[Received], bool]], Any]]:
    """A function that reads until the predicate holds, and returns all that was read since the last time."""
    waiting: list[Received] = []

    async def until(is_last: Callable[[Received], bool]) -> list[Received]:
        read: list[Received] = []
        async with asyncio.timeout(15):
            while True:
                while waiting:
                    read.append(waiting.pop(0))
                    if is_last(read[-1]):
                        return read
                waiting.extend(parsed(await anext(stream)))

    async with aclosing(stream):
        yield until


def run_async(scenario: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(scenario(), 30)

    return asyncio.run(bounded())


async def say(database: Database, run_id: Any, step: int, kind: Any = "series") -> None:
    def write() -> None:
        with database.transaction() as session:
            publish(session, run_id, kind, {"step": step})

    await asyncio.to_thread(write)


def is_open(received: Received) -> bool:
    return received.event == "open"


def has_step(step: int) -> Callable[[Received], bool]:
    return lambda received: received.data.get("step") == step


def test_what_is_written_arrives_with_its_id(database, make_run, redis_url) -> None:
    run_id, other = make_run(), make_run()

    async def scenario() -> None:
        async with opened(follow_notices(Hub(database, redis_url), frozenset({run_id}), None)) as until:
            assert await until(is_open) == [Received("open", {}, 0)]
            await say(database, other, 1)
            await say(database, run_id, 2)
            (received,) = await until(has_step(2))
            assert (received.event, received.data["run_id"]) == ("series", str(run_id))
            assert received.id == 2

    run_async(scenario)


def test_redis_wakes_the_stream_long_before_it_would_poll(database, make_run, redis_url, monkeypatch) -> None:
    run_id = make_run()

    async def listener_is_there() -> None:
        async with redis.asyncio.from_url(redis_url) as client, asyncio.timeout(10):
            while (await client.pubsub_numsub(CHANNEL))[0][1] == 0:
                await asyncio.sleep(0.01)

    async def scenario() -> None:
        async with opened(follow_notices(Hub(database, redis_url), None, None)) as until:
            await until(is_open)
            await listener_is_there()
            monkeypatch.setattr(hub, "POLL_INTERVAL_S", 3600)
            for step in range(12):
                await say(database, run_id, step)
                await until(has_step(step))

    run_async(scenario)


def test_a_wake_in_the_very_moment_of_a_tick_is_heard(database, make_run, monkeypatch) -> None:
    monkeypatch.setattr(hub, "_TICK_S", 0)
    run_id = make_run()

    async def scenario() -> None:
        shared, subscription = Hub(database, NOBODY), hub.Subscription(None, None, 0)
        shared._subscriptions.add(subscription)
        shared._next_poll = math.inf
        await say(database, run_id, 1)
        asyncio.get_running_loop().call_soon(shared._wake.set)
        await shared._tick()
        assert [notice.id for notice in await subscription.take(1)] == [1]

    run_async(scenario)


def test_with_redis_down_the_stream_still_advances(database, make_run, caplog) -> None:
    run_id = make_run()

    async def scenario() -> None:
        async with opened(follow_notices(Hub(database, NOBODY), None, None)) as until:
            await until(is_open)
            for step in (1, 2, 3):
                await say(database, run_id, step)
                await until(has_step(step))

    run_async(scenario)
    assert [record.message for record in caplog.records].count("Redis does not answer; live streams poll") == 1


def test_last_event_id_replays_without_loss_or_repetition_under_concurrent_writers(
    database, make_run, redis_url, monkeypatch
) -> None:
    """A client that is cut off again and again, while several writers go on, reads every notice once and in order."""
    monkeypatch.setattr(follow, "_PAGE", 7)
    run_ids = [make_run() for _ in range(3)]

    def write(run_id: Any) -> None:
        for step in range(60):
            with database.transaction() as session:
                publish(session, run_id, "series", {"step": step})

    with database.transaction() as session:
        publish(session, run_ids[0], "series", {"step": -1})  # where the client's history begins

    async def scenario() -> list[int]:
        shared = Hub(database, redis_url)
        read = [1]
        with ThreadPoolExecutor(3) as threads:
            writing = asyncio.gather(*(asyncio.wrap_future(threads.submit(write, run_id)) for run_id in run_ids))
            # A second client keeps the hub running while the first comes and goes.
            async with opened(follow_notices(shared, None, None)) as other:
                await other(is_open)
                for visit in itertools.count(1000):
                    is_last = writing.done()
                    async with opened(follow_notices(shared, None, read[-1])) as until:
                        received = await until(is_open)
                        await say(database, run_ids[0], visit)
                        received += await until(has_step(visit))
                    read += [event.id for event in received if event.event == "series" and event.id is not None]
                    if is_last:
                        return read
        raise AssertionError

    read = run_async(scenario)
    with database.transaction() as session:
        assert read == session.scalars(select(Notice.id).order_by(Notice.id)).all()
    assert len(read) > 181


def test_a_client_ahead_of_this_process_is_sent_nothing_twice(database, make_run) -> None:
    """Its earlier stream was served by another process, which had read further."""
    run_id = make_run()

    async def scenario() -> None:
        shared = Hub(database, NOBODY)
        async with opened(follow_notices(shared, None, None)) as first:
            await first(is_open)
            for step in (1, 2):
                await say(database, run_id, step)
            async with opened(follow_notices(shared, None, 2)) as second:
                assert [event.event for event in await second(is_open)] == ["open"]
                await say(database, run_id, 3)
                assert [event.id for event in await second(has_step(3))] == [3]

    run_async(scenario)


def test_lost_history_asks_for_a_resync(database, make_run, redis_url) -> None:
    run_id = make_run()
    for step in range(5):
        with database.transaction() as session:
            publish(session, run_id, "series", {"step": step})
    with database.transaction() as session:
        session.execute(update(Notice).where(Notice.id <= 3).values(created_at=func.now() - func.make_interval(1)))
        service.trim(session)

    async def events(start: int) -> list[str]:
        async with opened(follow_notices(Hub(database, redis_url), None, start)) as until:
            received = await until(is_open)
            await say(database, run_id, 100 + start)
            return [event.event for event in received + await until(has_step(100 + start))]

    async def scenario() -> None:
        assert await events(2) == ["resync", "open", "series"]
        assert await events(3) == ["series"] * 3 + ["open", "series"]
        assert await events(9999) == ["resync", "open", "series"]

    run_async(scenario)


def test_a_slow_client_is_told_to_resync_and_goes_on(database, make_run, redis_url, monkeypatch) -> None:
    monkeypatch.setattr(hub, "MAX_WAITING", 3)
    run_id = make_run()

    async def scenario() -> None:
        shared = Hub(database, redis_url)
        async with (
            opened(follow_notices(shared, None, None)) as slow,
            opened(follow_notices(shared, None, None)) as fast,
        ):
            await slow(is_open)
            await fast(is_open)
            for step in range(6):
                await say(database, run_id, step)
                await fast(has_step(step))
            assert [event.event for event in await slow(lambda event: event.event == "resync")] == ["resync"]
            await say(database, run_id, 99)
            await slow(has_step(99))

    run_async(scenario)


def test_waiting_streams_hold_no_connection_and_the_last_one_puts_out_the_light(database, make_run, redis_url) -> None:
    run_id = make_run()

    async def scenario() -> None:
        shared = Hub(database, redis_url)
        async with (
            opened(follow_notices(shared, None, None)) as first,
            opened(follow_log(shared, run_id, 0)),
            opened(follow_notices(shared, None, None)) as second,
        ):
            await first(is_open)
            await second(is_open)
            assert len(asyncio.all_tasks()) <= 4, "one reader and one listener, however many clients"
            while database.engine.pool.checkedout():  # for as long as a query takes
                await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            while shared._is_running or len(asyncio.all_tasks()) > 2:
                await asyncio.sleep(0.01)
        async with opened(follow_notices(shared, None, None)) as again:
            await again(is_open)
            await say(database, run_id, 1)
            await again(has_step(1))

    run_async(scenario)


def test_keep_alive_is_a_comment(database, redis_url, monkeypatch) -> None:
    monkeypatch.setattr(follow, "KEEP_ALIVE_INTERVAL_S", 0.01)

    async def scenario() -> list[bytes]:
        async with aclosing(follow_notices(Hub(database, redis_url), None, None)) as stream:
            return [await anext(stream) for _ in range(4)]

    assert run_async(scenario) == [b"retry: 1000\n\n", b"id: 0\nevent: open\ndata: {}\n\n", *[b": keep-alive\n\n"] * 2]


def test_a_stream_ends_once_its_caller_is_not_welcome_any_more(database, redis_url, monkeypatch) -> None:
    monkeypatch.setattr(follow, "KEEP_ALIVE_INTERVAL_S", 0.01)
    answers = iter([True, True, True, False])  # two for a slow beginning, before anything is kept alive

    async def scenario() -> list[bytes]:
        hub = Hub(database, redis_url)
        stream = while_welcome(follow_notices(hub, None, None), hub, lambda _: next(answers))
        async with asyncio.timeout(10):
            return [chunk async for chunk in stream]

    assert run_async(scenario)[-1] == b": keep-alive\n\n"
    assert next(answers, "asked to the end") == "asked to the end"


def test_a_stream_outlives_a_database_that_cannot_be_asked(database, redis_url, monkeypatch) -> None:
    monkeypatch.setattr(follow, "KEEP_ALIVE_INTERVAL_S", 0.01)

    def ask(session: Any) -> bool:
        session.execute(text("SELECT nothing FROM nowhere"))
        return False

    async def scenario() -> list[bytes]:
        hub = Hub(database, redis_url)
        async with aclosing(while_welcome(follow_notices(hub, None, None), hub, ask)) as stream:
            return [await anext(stream) for _ in range(6)]

    assert len(run_async(scenario)) == 6


def test_closing_the_hub_ends_every_stream(database, make_run, redis_url) -> None:
    run_id = make_run()

    async def scenario() -> None:
        shared = Hub(database, redis_url)
        streams = [follow_notices(shared, None, None), follow_log(shared, run_id, 0)]
        reading = [asyncio.create_task(_read_all(stream)) for stream in streams]
        async with asyncio.timeout(5):
            while len(shared._subscriptions) < 2:
                await asyncio.sleep(0.01)
        shared.close()
        await asyncio.wait_for(asyncio.gather(*reading), 5)

    run_async(scenario)


async def _read_all(stream: AsyncGenerator[bytes, None]) -> list[Received]:
    async with aclosing(stream):
        return [event async for chunk in stream for event in parsed(chunk)]


def write_log(database: Database, run_id: Any, *messages: str) -> None:
    with database.transaction() as session:
        for message in messages:
            append_log(session, run_id, 1, "info", message)


def end(database: Database, run_id: Any) -> None:
    with database.transaction() as session:
        session.execute(update(Run).where(Run.id == run_id).values(status="succeeded"))
        append_log(session, run_id, 1, "info", "last words")
        publish(session, run_id, "run", {"status": "succeeded"})


def test_a_followed_log_ends_when_the_run_has_ended_and_all_is_sent(database, make_run, redis_url, monkeypatch) -> None:
    monkeypatch.setattr(follow, "_PAGE", 2)
    run_id, other = make_run(), make_run()
    write_log(database, run_id, "a", "b", "c")
    write_log(database, other, "not mine")

    async def scenario() -> list[Received]:
        async with opened(follow_log(Hub(database, redis_url), run_id, 1)) as until:
            received = await until(lambda event: event.data.get("message") == "c")
            await asyncio.to_thread(write_log, database, run_id, "d", "e")
            received += await until(lambda event: event.data.get("message") == "e")
            await asyncio.to_thread(end, database, run_id)
            return received + await until(lambda event: event.event == "end")

    received = run_async(scenario)
    assert [event.data.get("message") for event in received] == ["b", "c", "d", "e", "last words", None]
    assert received[-1] == Received("end", {"status": "succeeded"}, None)
    assert [event.id for event in received[:-1]] == [event.data["id"] for event in received[:-1]]


def test_a_log_of_an_ended_run_is_sent_from_the_given_line_and_closed(database, make_run, redis_url) -> None:
    run_id = make_run()
    write_log(database, run_id, "a", "b")
    end(database, run_id)

    async def ids(start: int) -> list[int | None]:
        return [event.id for event in await _read_all(follow_log(Hub(database, redis_url), run_id, start))]

    for start in (0, 2, 3):
        assert run_async(lambda start=start: ids(start)) == [*range(start + 1, 4), None]
