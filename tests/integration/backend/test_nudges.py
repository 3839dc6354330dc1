import time

import redis

from backend.db import Database
from backend.nudges import CHANNEL, Sender


def test_messages_carry_a_name_and_nothing_else(settings):
    Sender(settings.redis_url).send("dispatch")
    with redis.Redis.from_url(settings.redis_url) as client:
        message = client.brpop("foredeck", timeout=30)[1]
    assert b'"task": "dispatch"' in message
    assert b'"argsrepr": "()"' in message


def test_news_are_published_in_between(settings):
    with redis.Redis.from_url(settings.redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe(CHANNEL)
        pubsub.get_message(timeout=5)
        Sender(settings.redis_url).wake_streams()
        message = pubsub.get_message(timeout=30)
    assert (message["type"], message["data"]) == ("message", b"")


def test_an_outage_is_logged_once(caplog):
    sender = Sender("redis://127.0.0.1:1")
    for _ in range(3):
        sender.wake_streams()
        deadline = time.monotonic() + 30
        while not sender._waiting.empty() or "Redis takes no nudges" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert caplog.text.count("Redis takes no nudges") == 1


def test_launching_does_not_wait_for_a_redis_that_is_down(app, launch, database, settings, caplog):
    database.close()
    broker = "redis://127.0.0.1:1/9"  # nobody else's: a process logs an outage of a broker once
    app.state.database = Database(settings.model_copy(update={"redis_url": broker}))
    launch()  # the client's libraries are loaded once
    begin = time.monotonic()
    for _ in range(5):
        launch()
    assert time.monotonic() - begin < 4  # one connection attempt alone takes 6 s
    deadline = time.monotonic() + 60
    while "Redis takes no nudges" not in caplog.text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
