import time

import redis

from backend.nudges import Sender


def test_messages_carry_a_name_and_nothing_else(settings):
    Sender(settings.redis_url).send("dispatch")
    with redis.Redis.from_url(settings.redis_url) as client:
        message = client.brpop("foredeck", timeout=30)[1]
    assert b'"task": "dispatch"' in message
    assert b'"argsrepr": "()"' in message


def test_launching_does_not_wait_for_a_redis_that_is_down(app, launch, database, caplog):
    database.redis_url = "redis://127.0.0.1:1"
    launch()  # the client's libraries are loaded once
    begin = time.monotonic()
    for _ in range(5):
        launch()
    assert time.monotonic() - begin < 4  # one connection attempt alone takes 6 s
    deadline = time.monotonic() + 60
    while "Redis takes no nudges" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
