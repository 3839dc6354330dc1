import threading
from uuid import UUID

import pytest
from sqlalchemy import text

from backend import queue


@pytest.fixture
def run_id(launch, database):
    run_id = UUID(launch()["id"])
    with database.transaction() as session:
        queue.forget(session, run_id)
    return run_id


@pytest.fixture
def do(database):
    """Calls a function of the queue in a transaction of its own."""

    def do(function, *arguments, **keywords):
        with database.transaction() as session:
            return function(session, *arguments, **keywords)

    return do


@pytest.fixture
def sql(database):
    def sql(statement):
        with database.transaction() as session:
            session.execute(text(statement))

    return sql


def test_only_what_is_due_and_free_is_claimed_the_longest_due_first(do, sql, run_id):
    assert do(queue.claim, 30) is None
    do(queue.add, "stop", run_id, 1, due_in_s=60)
    assert do(queue.claim, 30) is None
    do(queue.add, "dispatch", run_id, 2)
    do(queue.add, "dispatch", run_id, 1)
    sql("UPDATE outbox SET due_at = now() - interval '1 minute' WHERE attempt = 1 AND kind = 'dispatch'")
    first, second = do(queue.claim, 30), do(queue.claim, 30)
    assert [(lease.kind, lease.attempt, lease.num_tries) for lease in (first, second)] == [
        ("dispatch", 1, 1),
        ("dispatch", 2, 1),
    ]
    assert do(queue.claim, 30) is None


def test_promising_twice_is_promising_once(do, run_id):
    do(queue.add, "dispatch", run_id, 1)
    do(queue.add, "dispatch", run_id, 1)
    assert do(queue.claim, 30)
    assert do(queue.claim, 30) is None


def test_an_expired_lease_is_taken_over_and_the_stale_token_changes_nothing(do, sql, run_id):
    do(queue.add, "dispatch", run_id, 1)
    stale = do(queue.claim, 30)
    sql("UPDATE outbox SET lock_expires_at = now() - interval '1 second'")
    fresh = do(queue.claim, 30)
    assert (fresh.id, fresh.num_tries) == (stale.id, 2)
    assert not do(queue.is_held, stale)
    assert not do(queue.postpone, stale, 1000)
    assert not do(queue.finish, stale)
    assert do(queue.is_held, fresh)
    assert do(queue.finish, fresh)
    assert not do(queue.finish, fresh)


def test_postponed_work_is_free_again_when_it_is_due(do, sql, run_id):
    do(queue.add, "dispatch", run_id, 1)
    lease = do(queue.claim, 30)
    assert do(queue.postpone, lease, 60, "no answer")
    assert do(queue.claim, 30) is None
    sql("UPDATE outbox SET due_at = now()")
    again = do(queue.claim, 30)
    assert again.num_tries == 2
    assert not do(queue.finish, lease)


def test_a_claim_does_not_wait_for_a_row_that_somebody_looks_at(do, database, run_id):
    do(queue.add, "dispatch", run_id, 1)
    with database.transaction() as session:
        session.execute(text("SELECT 1 FROM outbox FOR UPDATE"))
        assert do(queue.claim, 30) is None
    assert do(queue.claim, 30)


def test_of_many_who_claim_at_once_each_row_has_one_holder(do, run_id):
    for number in range(20):
        do(queue.add, "dispatch", run_id, number)
    barrier, leases = threading.Barrier(4), []

    def claim_all():
        barrier.wait(10)
        while lease := do(queue.claim, 30):
            leases.append(lease.attempt)

    threads = [threading.Thread(target=claim_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(leases) == list(range(20))


def test_a_periodic_job_has_one_who_does_it(do, sql):
    assert do(queue.begin_periodic, "job", 60)
    assert not do(queue.begin_periodic, "job", 60)
    assert do(queue.begin_periodic, "other", 60)
    sql("UPDATE periodic_job SET started_at = started_at - interval '61 seconds' WHERE name = 'job'")
    barrier, turns = threading.Barrier(4), []

    def begin():
        barrier.wait(10)
        turns.append(do(queue.begin_periodic, "job", 60))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(turns) == [False, False, False, True]


def test_a_change_that_is_rolled_back_promises_nothing(database, do, run_id):
    with database.transaction() as session:
        queue.add(session, "dispatch", run_id, 1)
        session.rollback()
    assert do(queue.claim, 30) is None
