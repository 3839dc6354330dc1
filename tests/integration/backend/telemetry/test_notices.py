import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
import redis
from sqlalchemy import select, text

from backend.db import Database
from backend.models import LogLine, Notice, Run
from backend.nudges import CHANNEL
from backend.telemetry.notices import append_log, publish


def notices(database: Database) -> list[tuple[str, dict[str, Any]]]:
    with database.transaction() as session:
        return [(notice.kind, notice.body) for notice in session.scalars(select(Notice).order_by(Notice.id))]


def test_several_of_a_kind_become_one(database, make_run) -> None:
    run_id = make_run()
    with database.transaction() as session:
        publish(session, run_id, "series", {"names": ["b"], "step": 9, "from_step": 9})
        publish(session, run_id, "series", {"names": ["a", "b"], "step": 4, "from_step": 4})
        publish(session, run_id, "run", {"status": "running", "step": 5})
        publish(session, run_id, "run", {"step": 3})
        assert session.scalars(select(Notice)).all() == [], "written at the commit, not before"
    assert notices(database) == [
        ("series", {"names": ["a", "b"], "step": 9, "from_step": 4}),
        ("run", {"status": "running", "step": 3}),
    ]


def test_a_rolled_back_transaction_says_nothing(database, make_run) -> None:
    run_id = make_run()

    def fail() -> None:
        with database.transaction() as session:
            publish(session, run_id, "run", {})
            append_log(session, run_id, 1, "info", "never")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.transaction() as session:
        assert session.scalars(select(LogLine)).all() == []
    assert notices(database) == []


def test_a_savepoint_does_not_write_early(database, make_run) -> None:
    run_id = make_run()
    with database.transaction() as session:
        with session.begin_nested():
            publish(session, run_id, "run", {"step": 1})
        assert session.scalars(select(Notice)).all() == []
    assert notices(database) == [("run", {"step": 1})]


def test_a_log_line_brings_its_own_notice(database, make_run) -> None:
    run_id = make_run()
    with database.transaction() as session:
        append_log(session, run_id, 0, "info", "one\x00")
        append_log(session, run_id, 0, "error", "two")
    with database.transaction() as session:
        lines = session.scalars(select(LogLine).order_by(LogLine.id)).all()
    assert [(line.message, line.level, line.emitter) for line in lines] == [
        ("one", "info", "control/0"),
        ("two", "error", "control/0"),
    ]
    assert notices(database) == [("log", {"last_id": lines[-1].id})]


def test_news_of_a_deleted_run_are_dropped(database, make_run) -> None:
    kept = make_run()
    with database.transaction() as session:
        for run_id in (uuid4(), kept):
            publish(session, run_id, "run", {})
            append_log(session, run_id, 1, "info", "x")
    assert sorted(kind for kind, _ in notices(database)) == ["log", "run"]


def test_ids_become_visible_in_order_under_concurrent_writers(database, make_run) -> None:
    """A reader that has seen id n never sees a smaller one appear later; of log lines neither."""
    run_ids = [make_run() for _ in range(4)]
    is_done = threading.Event()

    def write(run_id: Any) -> None:
        for step in range(40):
            with database.transaction() as session:
                publish(session, run_id, "series", {"step": step})
                append_log(session, run_id, 1, "info", str(step))
                session.execute(text("SELECT pg_sleep(random() * 0.002)"))

    def read(table: Any) -> list[int]:
        seen: list[int] = []
        is_last = False
        while True:
            with database.transaction() as session:
                seen += session.scalars(select(table.id).where(table.id > max(seen, default=0)).order_by(table.id))
            if is_last:
                return seen
            is_last = is_done.is_set()

    with ThreadPoolExecutor(6) as threads:
        readers = [threads.submit(read, table) for table in (Notice, LogLine)]
        list(threads.map(write, run_ids))
        is_done.set()
        seen = [reader.result() for reader in readers]
    with database.transaction() as session:
        everything = [session.scalars(select(table.id).order_by(table.id)).all() for table in (Notice, LogLine)]
    assert seen == everything
    assert len(seen[0]) == 4 * 40 * 2
    assert len(seen[1]) == 4 * 40


def test_a_locked_run_is_waited_for_before_the_lock_of_all_is_taken(database, make_run) -> None:
    """Otherwise the two would wait for each other: one for the run's row, the other for the lock of all notices."""
    run_id = make_run()
    has_locked, has_published = threading.Event(), threading.Event()

    def hold() -> None:
        with database.transaction() as session:
            session.execute(select(Run.id).where(Run.id == run_id).with_for_update())
            has_locked.set()
            _wait_until(lambda: _num_waiting(database) == 1, has_published)
            publish(session, run_id, "run", {"by": "holder"})

    def other() -> None:
        has_locked.wait(10)
        with database.transaction() as session:
            publish(session, run_id, "run", {"by": "other"})
            has_published.set()

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(hold), threads.submit(other)]:
            future.result(timeout=20)
    assert [body["by"] for _, body in notices(database)] == ["holder", "other"]


def _num_waiting(database: Database) -> int:
    with database.transaction() as session:
        return session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")) or 0


def _wait_until(condition: Callable[[], bool], after: threading.Event) -> None:
    assert after.wait(10)
    for _ in range(2000):
        if condition():
            return
    raise AssertionError("the other transaction never came to wait")


def test_a_commit_nudges_and_one_without_news_does_not(database, make_run, redis_url) -> None:
    run_id = make_run()
    with redis.Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe(CHANNEL)
        while pubsub.get_message(timeout=5) is not None:
            pass
        with database.transaction() as session:
            session.execute(select(Run))
        with database.transaction() as session:
            publish(session, run_id, "run", {})
        message = pubsub.get_message(timeout=5)
        assert message is not None
        assert message["type"] == "message"
        assert pubsub.get_message(timeout=0.05) is None, "one nudge a commit"
