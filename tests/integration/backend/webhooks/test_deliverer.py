"""Threads that deliver: slow receivers hold up nobody, and Redis need not be there."""

import threading
import time
from ipaddress import ip_network

import pytest
from sqlalchemy import text

from backend.launcher.fallback import Fallback
from backend.webhooks import service
from backend.webhooks.deliverer import MAX_AT_ONCE, Deliverer
from backend.webhooks.delivery import Courier
from backend.webhooks.sealing import seal
from backend.webhooks.signing import new_secret
from tests.integration.backend.webhooks.servers import serving


@pytest.fixture
def open_settings(settings):
    changes = {"webhook_allowed_networks": (ip_network("127.0.0.0/8"),), "reconcile_interval_s": 0.05}
    return settings.model_copy(update=changes)


@pytest.fixture
def make_deliverer(database, open_settings):
    made = []

    def make(courier=None):
        made.append(Deliverer(database, open_settings, courier))
        return made[-1]

    yield make
    for each in made:
        each.stop(30)


@pytest.fixture
def add_hook(insert_webhook):
    return lambda port: insert_webhook(url=f"http://127.0.0.1:{port}/", secret=seal(new_secret(), ()))


@pytest.fixture
def emit(database, project_id):
    def emit():
        with database.transaction() as session:
            service.emit(session, project_id, "run.failed", {})

    return emit


def wait_for(is_there):
    deadline = time.monotonic() + 30
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_slow_receivers_hold_up_nobody(make_deliverer, add_hook, emit, deliveries):
    """All but one of the places are taken by receivers that do not answer until the others have been served."""
    is_over = threading.Event()
    with serving() as slow, serving() as quick:
        slow.before_answer = lambda: is_over.wait(30)
        for _ in range(MAX_AT_ONCE - 1):
            add_hook(slow.port)
        quick_hooks = [add_hook(quick.port) for _ in range(5)]
        emit()
        emit()
        make_deliverer().wake()
        wait_for(lambda: [row.state for row in deliveries() if row.webhook_id in quick_hooks] == ["succeeded"] * 10)
        assert len(slow.requests) <= MAX_AT_ONCE - 1, "one at a time"
        is_over.set()
        wait_for(lambda: len(slow.requests) == 2 * (MAX_AT_ONCE - 1))
    wait_for(lambda: {row.state for row in deliveries()} == {"succeeded"})


def test_many_who_deliver_at_once_send_each_once(make_deliverer, add_hook, emit, deliveries):
    with serving() as server:
        for _ in range(6):
            add_hook(server.port)
        for _ in range(5):
            emit()
        for deliverer in [make_deliverer() for _ in range(3)]:
            for _ in range(3):
                deliverer.wake()
        wait_for(lambda: {row.state for row in deliveries()} == {"succeeded"})
        assert len(server.requests) == len({headers["webhook-id"] for _, headers, _ in server.requests}) == 30


def test_while_redis_is_down_the_service_itself_delivers(database, open_settings, make_deliverer, add_hook, emit):
    fallback = Fallback(database, open_settings, make_deliverer().stand_in)
    with serving() as server:
        add_hook(server.port)
        emit()
        fallback.start()
        wait_for(lambda: server.requests)
        fallback.stop()


def test_while_somebody_else_delivers_it_keeps_out_of_the_way(make_deliverer, database):
    deliverer = make_deliverer()
    with database.transaction() as session:
        session.execute(text("INSERT INTO periodic_job VALUES ('webhooks', now())"))
    assert not deliverer.stand_in(3600)
    assert deliverer.stand_in(0)


def test_no_trouble_ends_it(make_deliverer, database, open_settings, caplog):
    troubles, calls = [ZeroDivisionError("a mistake")], []

    class Troubled(Courier):
        def deliver_next(self, claimed=lambda: None):
            calls.append(1)
            if troubles:
                raise troubles.pop()
            return False

    deliverer = make_deliverer(Troubled(database, open_settings))
    deliverer.tick()
    wait_for(lambda: "delivering webhooks failed" in caplog.text)
    deliverer.tick()
    wait_for(lambda: len(calls) >= 2)


def test_after_a_stop_nothing_begins(make_deliverer, add_hook, emit):
    deliverer = make_deliverer()
    deliverer.stop()
    with serving() as server:
        add_hook(server.port)
        emit()
        deliverer.tick()
        assert server.connections == 0
