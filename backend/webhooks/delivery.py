"""Delivers what is due: claimed in a transaction, sent outside any, noted in another.

Whoever dies in between has sent what nobody noted: it is sent again, with the same id.
"""

import logging
import re
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.db import Database
from backend.settings import Settings
from backend.webhooks import queue, signing
from backend.webhooks.post import TIMEOUT_S, Answer, UndeliveredError, post
from backend.webhooks.queue import Lease, Outcome
from backend.webhooks.receiver import Receiver, parse
from backend.webhooks.resolve import RefusedAddressError, Resolve, UnresolvedError, addresses_of, resolve
from backend.webhooks.retries import apply, retry_after_s
from backend.webhooks.sealing import UnreadableError, unseal

logger = logging.getLogger(__name__)

USER_AGENT = "Foredeck-Webhooks/1"
MAX_SHOWN = 500
_SECRET = re.compile(r"(fdk_|whsec_|Bearer\s+|Basic\s+|-----BEGIN)\S*", re.IGNORECASE)


class Courier:
    """Makes deliveries, one at a time; any number of them may work at once, in any process.

    Args:
        resolve: tells a name's addresses.
        context: TLS, other than with the system's authorities.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        resolve: Resolve = resolve,
        context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._database, self._settings = database, settings
        self._resolve, self._context = resolve, context

    def deliver_next(self, claimed: Callable[[], object] = lambda: None) -> bool:
        """Makes the delivery that is due longest. False when there was none.

        Args:
            claimed: called before it is sent, so that somebody can look for the next one meanwhile.
        """
        with self._database.transaction() as session:
            lease = queue.claim(session)
        if lease is None:
            return False
        claimed()
        outcome = self._attempt(lease)
        with self._database.transaction() as session:
            _note(session, lease, outcome)
        return True

    def _attempt(self, lease: Lease) -> Outcome:
        started_at, begin = datetime.now(UTC), time.monotonic()
        status, answer, error = None, Answer(0, "", b""), None
        try:
            answer = self._send(lease, begin + TIMEOUT_S)
            status, error = answer.status, failure(answer.status)
        except (UndeliveredError, UnresolvedError, RefusedAddressError, UnreadableError) as problem:
            error = str(problem)
        except Exception as problem:  # one row that cannot be sent must neither stop the others nor come back at once
            logger.exception("a webhook could not be sent", extra={"webhook_id": str(lease.webhook_id)})
            error = f"an error in the service: {type(problem).__name__}"
        return Outcome(
            started_at=started_at,
            duration_ms=round(1000 * (time.monotonic() - begin)),
            status=status,
            answer=shown(answer.start),
            error=error,
            retry_after_s=retry_after_s(answer.retry_after),
            is_gone=status == 410,
        )

    def _send(self, lease: Lease, deadline: float) -> Answer:
        keys = self._settings.encryption_keys
        sealed = (lease.secret, lease.previous_secret)
        secrets = [unseal(secret, keys) for secret in sealed if secret is not None]
        receiver, body = _parsed(lease.url), lease.body.encode()
        signed = signing.headers(secrets, signing.message_id(lease.delivery_id), int(time.time()), body)
        headers = signed | {"User-Agent": USER_AGENT}
        allowed = self._settings.webhook_allowed_networks
        addresses = addresses_of(receiver, allowed, self._resolve, deadline - time.monotonic())
        return post(receiver, addresses, headers, body, deadline, self._context)


def _parsed(url: str) -> Receiver:
    try:
        return parse(url)
    except ValueError as error:  # an older version may have taken it
        raise RefusedAddressError(f"The webhook's url {error}") from error


def _note(session: Session, lease: Lease, outcome: Outcome) -> None:
    """Unless the lease was lost meanwhile: whoever has it now notes what they see."""
    held = queue.held(session, lease)
    if held is None:
        return
    webhook, delivery = held
    queue.release(webhook)
    queue.add_attempt(session, delivery, outcome)
    apply(session, webhook, delivery, outcome, session.scalars(select(func.now())).one())
    fields = {"webhook_id": str(webhook.id), "delivery_id": str(delivery.id), "type": delivery.type}
    fields |= {"status": str(outcome.status), "duration_ms": str(outcome.duration_ms), "error": outcome.error or ""}
    logger.log(logging.INFO if outcome.error is None else logging.WARNING, "webhook sent", extra=fields)


def failure(status: int) -> str | None:
    """Why an answer does not count as taken; None for 2xx."""
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"answered {status}: redirects are not followed, give the address that it leads to"
    return f"answered {status}"


def shown(answer: bytes) -> str:
    """How an answer began, for people: printable, and without what looks like a secret."""
    text = "".join(char if char.isprintable() else " " for char in answer.decode("utf-8", "replace"))
    return _SECRET.sub("[redacted]", text)[:MAX_SHOWN].strip()
