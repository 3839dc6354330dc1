"""The service fixtures keep tests apart."""

import psycopg
import pytest
import redis


def _tables(url: str) -> set[str]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {row[0] for row in rows}


@pytest.mark.parametrize("turn", [1, 2])
def test_database_is_migrated_and_fresh(database_url: str, turn: int) -> None:
    assert {"run", "attempt", "outbox", "point"} <= _tables(database_url)
    assert "left_behind" not in _tables(database_url)
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute("CREATE TABLE left_behind ()")


@pytest.mark.parametrize("turn", [1, 2])
def test_redis_is_empty(redis_url: str, turn: int) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left", "behind")
