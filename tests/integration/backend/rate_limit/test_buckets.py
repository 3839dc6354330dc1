"""Both kinds of buckets, which must come to the same."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.rate_limit import buckets
from backend.rate_limit.buckets import REMEMBERED_S, Bucket, LocalBuckets, RedisBuckets

TEN = Bucket("caller:x", 10, 2.0)
PATIENCE_S = 30
"""What a request would not wait for, a test may: machines are busy."""


@pytest.fixture(params=["local", "redis"])
def kept(request, redis_url):
    if request.param == "local":
        yield LocalBuckets()
        return
    shared = RedisBuckets(redis_url, PATIENCE_S)
    yield shared
    shared.close()


def take_all(kept, bucket, now):
    number = 0
    while kept.take(bucket, now)[0]:
        number += 1
    return number


def test_it_holds_so_many_and_fills_evenly(kept):
    assert take_all(kept, TEN, 100.0) == 10
    assert kept.take(TEN, 100.4) == (False, pytest.approx(0.8))
    assert kept.take(TEN, 100.5) == (True, pytest.approx(0.0, abs=1e-6))
    assert take_all(kept, TEN, 103.0) == 5
    assert take_all(kept, TEN, 1000.0) == 10


def test_a_clock_that_goes_back_gives_nothing(kept):
    take_all(kept, TEN, 100.0)
    assert kept.take(TEN, 50.0) == (False, 0)
    assert kept.take(TEN, 101.0) == (True, pytest.approx(1))


def test_each_key_is_a_bucket(kept):
    take_all(kept, TEN, 100.0)
    assert kept.take(TEN._replace(key="caller:y"), 100.0) == (True, 9)


def test_looking_takes_nothing_and_what_is_put_back_does_not_overflow(kept):
    assert kept.take(TEN, 100.0, cost=0) == (True, 10)
    assert kept.take(TEN, 100.0, cost=-1, need=0) == (True, 10)
    take_all(kept, TEN, 100.0)
    assert kept.take(TEN, 100.0, cost=0) == (False, 0)
    assert kept.take(TEN, 100.0, cost=-1, need=0) == (True, 1)
    assert kept.take(TEN, 100.0, cost=5, need=0) == (True, 0)


def test_a_bucket_that_must_exist_is_not_made(kept):
    for _ in range(2):
        assert kept.take(TEN, 100.0, must_exist=True) is None
    kept.take(TEN, 100.0)
    assert kept.take(TEN, 100.0, must_exist=True) == (True, 8)
    kept.forget(TEN.key)
    assert kept.take(TEN, 100.0, must_exist=True) is None
    kept.forget(TEN.key)


def test_of_many_at_once_no_more_get_through(kept):
    start = threading.Barrier(8)

    def hurry(_):
        start.wait()
        return take_all(kept, TEN._replace(limit=100), 100.0)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(hurry, range(8))) == 100


calls = st.tuples(
    st.floats(0, 1e6), st.sampled_from([-1, 0, 1, 2.5]), st.sampled_from([0, 1]), st.booleans(), st.sampled_from("ab")
)


@given(st.lists(calls, max_size=30), st.integers(1, 100_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_lua_and_python_come_to_the_same(redis_url, sequence, limit):
    shared, local = RedisBuckets(redis_url, PATIENCE_S), LocalBuckets()
    for key in "ab":
        shared.forget(key)
    for now, cost, need, must_exist, key in sequence:
        bucket = Bucket(key, limit, limit / 60)
        one, other = (each.take(bucket, now, cost, need, must_exist) for each in (shared, local))
        if one is None or other is None:
            assert one is other
        else:
            assert one[1] == pytest.approx(other[1], abs=0.1 + limit * 1e-6)
    shared.close()


def test_what_nobody_uses_is_forgotten(redis_url, monkeypatch):
    shared = RedisBuckets(redis_url, PATIENCE_S)
    shared.take(TEN, 100.0)
    with redis.Redis.from_url(redis_url) as client:
        (key,) = client.keys("*")
        assert 0 < client.ttl(key) <= REMEMBERED_S
    shared.close()
    monkeypatch.setattr(buckets, "MAX_LOCAL", 3)
    local = LocalBuckets()
    for name in "abcabd":
        local.take(TEN._replace(key=name), 100.0)
    assert local.take(TEN._replace(key="c"), 100.0, must_exist=True) is None
    assert local.take(TEN._replace(key="a"), 100.0, must_exist=True) == (True, 7)
