"""What docs/operations/webhooks.md tells receivers is so."""

import re
import time
from uuid import uuid4

import pytest

from backend.settings import REPOSITORY
from backend.webhooks import queue, retries, service
from backend.webhooks.delivery import MAX_SHOWN
from backend.webhooks.events import EVENT_TYPES, payload
from backend.webhooks.post import CONNECT_TIMEOUT_S, TIMEOUT_S
from backend.webhooks.signing import headers, message_id, new_secret

DOCUMENT = (REPOSITORY / "docs" / "operations" / "webhooks.md").read_text()


@pytest.fixture
def verify():
    (code,) = re.findall("```python\n(.*?)```", DOCUMENT, re.DOTALL)
    names = {}
    exec(code, names)
    return names["verify"]


def test_the_example_takes_what_was_signed_and_nothing_else(verify):
    secret, body = new_secret(), payload("run.failed", {"run_name": "größer"}).encode()
    sent = headers([secret], message_id(uuid4()), int(time.time()), body)
    verify(secret, sent, body)
    for wrong in (
        (new_secret(), sent, body),
        (secret, sent, body + b" "),
        (secret, sent | {"webhook-id": "msg_other"}, body),
        (secret, sent | {"webhook-timestamp": str(int(time.time()) + 1)}, body),
    ):
        with pytest.raises(ValueError, match="signature is wrong"):
            verify(*wrong)


def test_the_example_takes_either_secret_while_they_are_exchanged(verify):
    old, new = new_secret(), new_secret()
    sent = headers([new, old], "msg_1", int(time.time()), b"{}")
    verify(old, sent, b"{}")
    verify(new, sent, b"{}")


def test_the_example_refuses_what_is_old(verify):
    secret = new_secret()
    with pytest.raises(ValueError, match="too old"):
        verify(secret, headers([secret], "msg_1", int(time.time()) - 3600, b"{}"), b"{}")


def test_every_event_is_described():
    table = DOCUMENT[DOCUMENT.index("## Events") : DOCUMENT.index("The body is")]
    assert set(re.findall(r"`([a-z]+\.?[a-z]*)`", table)) - {"ending"} >= {*EVENT_TYPES, "ping"}


def test_the_numbers_are_those_of_the_program():
    delays = [min(retries.MAX_DELAY_S, retries.FIRST_DELAY_S * retries.FACTOR**n) for n in range(retries.MAX_TRIES - 1)]
    assert (len(delays) + 1, round(sum(delays) / 3600), delays[:3]) == (11, 23, [5, 15, 45])
    assert (retries.MAX_DELAY_S, retries.MAX_RETRY_AFTER_S, retries.JITTER) == (9 * 3600, 3600, 0.2)
    assert (TIMEOUT_S, CONNECT_TIMEOUT_S, MAX_SHOWN, service.MAX_PER_PROJECT) == (10, 5, 500, 20)
    assert (retries.DISABLE_AFTER.days, service.KEPT.days) == (3, 30)
    assert queue.LEASE_S > 2 * TIMEOUT_S, "nobody else begins while a request may still be on its way"
