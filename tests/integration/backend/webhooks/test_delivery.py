"""From an event to a receiver on this machine, through the database."""

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import select, text

from backend.models import AuditEntry, Webhook, WebhookAttempt
from backend.webhooks import queue, service
from backend.webhooks.delivery import Courier
from backend.webhooks.retries import MAX_TRIES
from backend.webhooks.sealing import seal
from backend.webhooks.signing import new_secret
from tests.integration.backend.webhooks.servers import serving

SECRET = new_secret()


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def open_settings(settings):
    """Receivers on this machine may be reached."""
    return settings.model_copy(update={"webhook_allowed_networks": (ip_network("127.0.0.0/8"),)})


@pytest.fixture
def courier(database, open_settings):
    return Courier(database, open_settings)


@pytest.fixture
def hook(server, insert_webhook):
    return insert_webhook(url=f"http://127.0.0.1:{server.port}/in", secret=seal(SECRET, ()))


@pytest.fixture
def emit(database, project_id):
    def emit(count=1):
        for number in range(count):
            with database.transaction() as session:
                service.emit(session, project_id, "run.failed", {"number": number})

    return emit


@pytest.fixture
def sql(database):
    def sql(statement):
        with database.transaction() as session:
            session.execute(text(statement))

    return sql


@pytest.fixture
def read(database):
    def read(statement):
        with database.transaction() as session:
            return session.scalars(statement).all()

    return read


@pytest.fixture
def attempts(read):
    return lambda: read(select(WebhookAttempt).order_by(WebhookAttempt.id))


@pytest.fixture
def webhook(read):
    return lambda: read(select(Webhook))[0]


def is_signed(headers, body, secret):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode() in headers["webhook-signature"].split(" ")


def test_a_receiver_gets_a_signed_event_once(courier, emit, hook, server, deliveries, attempts, webhook):
    emit()
    assert courier.deliver_next()
    assert not courier.deliver_next()
    ((path, headers, body),) = server.requests
    (row,) = deliveries()
    assert (path, headers["webhook-id"], body.decode()) == ("/in", f"msg_{row.id.hex}", row.body)
    assert json.loads(body)["data"] == {"number": 0}
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert is_signed(headers, body, SECRET)
    assert not is_signed(headers, body + b" ", SECRET)
    assert (row.state, row.due_at, row.num_tries) == ("succeeded", None, 1)
    assert row.ended_at is not None
    assert [(attempt.status, attempt.error) for attempt in attempts()] == [(204, None)]
    assert (webhook().lock_token, webhook().failing_since) == (None, None)


def test_both_secrets_sign_until_the_old_ones_time_is_over(courier, emit, hook, server, sql):
    old = new_secret()
    sql(f"UPDATE webhook SET previous_secret = '{seal(old, ())}'")
    sql("UPDATE webhook SET previous_secret_expires_at = now() + interval '1 hour'")
    emit()
    courier.deliver_next()
    sql("UPDATE webhook SET previous_secret_expires_at = now() - interval '1 second'")
    emit()
    courier.deliver_next()
    first, second = [(headers, body) for _, headers, body in server.requests]
    assert (is_signed(*first, SECRET), is_signed(*first, old)) == (True, True)
    assert (is_signed(*second, SECRET), is_signed(*second, old)) == (True, False)


def test_what_fails_comes_again_with_the_same_id_and_body(
    courier, emit, hook, server, deliveries, attempts, sql, webhook
):
    server.answers = [
        (500, {}, b"oops fdk_0c1d2e3f_verysecret\x1b[31m"),
        (302, {"Location": "http://x"}, b""),
        (200, {}, b""),
    ]
    emit()
    assert courier.deliver_next()
    assert not courier.deliver_next(), "not at once"
    (row,) = deliveries()
    assert (row.state, row.num_tries) == ("pending", 1)
    assert timedelta(seconds=2) < row.due_at - datetime.now(UTC) < timedelta(seconds=7)
    assert (webhook().num_failures, webhook().failing_since is None) == (1, False)
    for _ in range(2):
        sql("UPDATE webhook_delivery SET due_at = now(); UPDATE webhook SET paused_until = NULL")
        assert courier.deliver_next()
    assert len({(headers["webhook-id"], body) for _, headers, body in server.requests}) == 1
    first, second, third = attempts()
    assert (first.status, first.error, first.answer) == (500, "answered 500", "oops [redacted] [31m")
    assert (second.status, "redirects are not followed" in second.error) == (302, True)
    assert (third.status, third.error) == (200, None)
    assert deliveries()[0].state == "succeeded"
    assert (webhook().num_failures, webhook().failing_since, webhook().paused_until) == (0, None, None)


def test_a_receiver_can_ask_for_time(courier, emit, hook, server, deliveries):
    server.answers = [(429, {"Retry-After": "600"}, b"")]
    emit()
    courier.deliver_next()
    assert timedelta(seconds=500) < deliveries()[0].due_at - datetime.now(UTC) <= timedelta(seconds=600)


def test_after_the_last_try_it_is_given_up(courier, emit, hook, server, deliveries, sql, webhook):
    server.answers = [(503, {}, b"")]
    emit()
    sql(f"UPDATE webhook_delivery SET num_tries = {MAX_TRIES - 1}")
    assert courier.deliver_next()
    (row,) = deliveries()
    assert (row.state, row.due_at, row.num_tries) == ("failed", None, MAX_TRIES)
    assert webhook().is_enabled


def test_a_webhook_that_fails_for_days_is_disabled(
    courier, emit, hook, server, deliveries, sql, webhook, read, project_id
):
    server.answers = [(503, {}, b"")]
    emit(3)
    sql("UPDATE webhook SET failing_since = now() - interval '73 hours', num_failures = 12")
    assert courier.deliver_next()
    assert webhook().is_enabled, "the delivery's own day is not over"
    sql(f"UPDATE webhook_delivery SET num_tries = {MAX_TRIES - 1}; UPDATE webhook SET paused_until = NULL")
    assert courier.deliver_next()
    assert (webhook().is_enabled, "Nothing has arrived since" in webhook().disabled_reason) == (False, True)
    assert {row.state for row in deliveries()} == {"failed"}
    (entry,) = read(select(AuditEntry).where(AuditEntry.action == "webhook.disable"))
    assert (entry.actor, entry.target, entry.project_id) == ("webhooks", str(hook), project_id)
    emit()
    assert len(deliveries()) == 3
    assert not courier.deliver_next()


def test_a_receiver_that_is_gone_for_good_is_told_nothing_more(courier, emit, hook, server, deliveries, webhook):
    server.answers = [(410, {}, b"")]
    emit(2)
    assert courier.deliver_next()
    assert (webhook().is_enabled, {row.state for row in deliveries()}) == (False, {"failed"})
    assert len(server.requests) == 1


def test_what_must_not_be_reached_is_not_reached(database, settings, emit, hook, server, attempts, deliveries):
    """The address may have been allowed when the webhook was made."""
    emit()
    assert Courier(database, settings).deliver_next()
    (attempt,) = attempts()
    assert (attempt.status, "127.0.0.1 is loopback" in attempt.error) == (None, True)
    assert deliveries()[0].state == "pending"
    assert server.connections == 0


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://2130706433/", "four decimal numbers"),
        ("https://user:hunter2@8.8.8.8/", "user name"),
        ("gopher://127.0.0.1:6379/", "must look like"),
        ("https://[::ffff:127.0.0.1]/", "write it as IPv4"),
    ],
)
def test_a_row_that_nobody_checked_is_checked(courier, emit, insert_webhook, attempts, url, why):
    insert_webhook(url=url, secret=seal(SECRET, ()))
    emit()
    assert courier.deliver_next()
    (attempt,) = attempts()
    assert why in attempt.error
    assert "hunter2" not in attempt.error


def test_a_name_that_turns_inward_after_the_check_is_not_followed(database, settings, emit, insert_webhook, server):
    """It stands for an address that may be reached when it is asked for, and for this machine ever after."""
    answers = ["127.0.0.2", "127.0.0.1"]
    settings = settings.model_copy(update={"webhook_allowed_networks": (ip_network("127.0.0.2/32"),)})
    courier = Courier(database, settings, lambda *_: [ip_address(answers.pop(0) if len(answers) > 1 else answers[0])])
    insert_webhook(url=f"http://rebinding.example:{server.port}/", secret=seal(SECRET, ()))
    with serving("127.0.0.2", port=server.port) as outside:
        emit()
        assert courier.deliver_next()
        assert (outside.connections, server.connections, answers) == (1, 0, ["127.0.0.1"])
        emit()
        assert courier.deliver_next()
        assert (outside.connections, server.connections) == (1, 0)


def test_an_encrypted_secret_signs_and_a_lost_key_is_named(
    database, open_settings, emit, insert_webhook, server, attempts, sql
):
    key = Fernet.generate_key().decode()
    insert_webhook(url=f"http://127.0.0.1:{server.port}/", secret=seal(SECRET, (key,)))
    emit()
    Courier(database, open_settings.model_copy(update={"encryption_keys": (key,)})).deliver_next()
    _, headers, body = server.requests[0]
    assert is_signed(headers, body, SECRET)
    emit()
    assert Courier(database, open_settings).deliver_next()
    assert "FOREDECK_ENCRYPTION_KEYS" in attempts()[1].error
    assert len(server.requests) == 1


def test_one_webhook_has_one_request_at_a_time(database, emit, hook, sql):
    emit(2)
    with database.transaction() as session:
        first = queue.claim(session)
    with database.transaction() as session:
        assert queue.claim(session) is None
    sql("UPDATE webhook SET lock_expires_at = now() - interval '1 second'")
    with database.transaction() as session:
        second = queue.claim(session)
        assert second.delivery_id == first.delivery_id, "whoever died may have sent it, or not"
        assert queue.held(session, first) is None
        assert queue.held(session, second) is not None


def test_a_claim_does_not_wait_for_one_who_looks(database, emit, hook):
    emit()
    with database.transaction() as session:
        session.execute(text("SELECT 1 FROM webhook FOR UPDATE"))
        with database.transaction() as other:
            assert queue.claim(other) is None
    with database.transaction() as session:
        assert queue.claim(session)


def test_an_event_does_not_wait_for_a_delivery(database, emit, hook, sql, project_id):
    """The transaction that tells of a run's end must not wait for whoever claims or notes."""
    emit()
    with database.transaction() as session:
        assert queue.claim(session)
        with database.transaction() as other:
            other.execute(text("SET LOCAL lock_timeout = '2s'"))
            service.emit(other, project_id, "run.failed", {})


def test_a_webhook_that_is_deleted_on_the_way_leaves_nothing(courier, emit, hook, server, sql, attempts, database):
    emit()
    courier.deliver_next(lambda: sql("DELETE FROM webhook"))
    assert (len(server.requests), attempts()) == (1, [])


def test_what_nobody_holds_a_lease_on_is_not_noted(courier, emit, hook, server, sql, attempts, deliveries):
    emit()
    courier.deliver_next(lambda: sql(f"UPDATE webhook SET lock_token = '{uuid4()}'"))
    assert (attempts(), deliveries()[0].state) == ([], "pending")
