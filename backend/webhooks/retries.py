"""What follows from an attempt: done, tried again later, given up, or a webhook that is told nothing more."""

import random
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from backend.auth import audit
from backend.models import Webhook, WebhookDelivery
from backend.webhooks.queue import Outcome, give_up_pending

MAX_TRIES = 11
FIRST_DELAY_S, FACTOR, MAX_DELAY_S = 5.0, 3, 32_400.0
"""5 s, 15 s, 45 s ... 9 h: the last try comes about 23 hours after the first."""
JITTER = 0.2
"""Of the delay, up or down: what failed together does not come again together."""
MAX_RETRY_AFTER_S = 3600.0
MAX_PAUSE_S = 60.0
DISABLE_AFTER = timedelta(days=3)
MANY_FAILURES = 50
ACTOR = "webhooks"
"""As the audit log has it."""


def apply(session: Session, webhook: Webhook, delivery: WebhookDelivery, outcome: Outcome, now: datetime) -> None:
    """Both locked."""
    delivery.num_tries += 1
    if outcome.error is None:
        delivery.state, delivery.due_at, delivery.ended_at = "succeeded", None, now
        webhook.failing_since, webhook.num_failures, webhook.paused_until = None, 0, None
        return
    webhook.failing_since = webhook.failing_since or now
    webhook.num_failures += 1
    webhook.paused_until = now + timedelta(seconds=pause_s(webhook.num_failures))
    is_last = delivery.num_tries >= MAX_TRIES
    if is_last:
        delivery.state, delivery.due_at, delivery.ended_at = "failed", None, now
    else:
        delivery.due_at = now + timedelta(seconds=max(delay_s(delivery.num_tries), outcome.retry_after_s))
    if outcome.is_gone:
        disable(session, webhook, "The receiver answered 410: it wants no more.")
    elif now - webhook.failing_since >= DISABLE_AFTER and (is_last or webhook.num_failures >= MANY_FAILURES):
        disable(session, webhook, f"Nothing has arrived since {webhook.failing_since:%Y-%m-%d %H:%M} UTC.")


def delay_s(num_tries: int) -> float:
    """Before the next try."""
    jitter = 1 + JITTER * (2 * random.random() - 1)  # noqa: S311 (no secret)
    return jitter * min(MAX_DELAY_S, FIRST_DELAY_S * float(FACTOR) ** (num_tries - 1))


def pause_s(num_failures: int) -> float:
    """Before the webhook's next delivery, whichever it is: one that fails again and again leaves room for others."""
    return min(MAX_PAUSE_S, 2.0 ** min(num_failures - 1, 10))


def retry_after_s(header: str) -> float:
    """Of the header, which may hold seconds; a date, or nonsense, counts as nothing."""
    is_number = header.isascii() and header.isdigit() and len(header) < 10
    return min(float(header), MAX_RETRY_AFTER_S) if is_number else 0.0


def disable(session: Session, webhook: Webhook, reason: str) -> None:
    """What waits for it is given up. Whoever has mended the receiver enables it, and has what matters sent again."""
    session.flush()
    webhook.is_enabled, webhook.disabled_reason = False, reason
    give_up_pending(session, webhook.id)
    audit.record(session, ACTOR, "webhook.disable", webhook.id, webhook.project_id, name=webhook.name, reason=reason)
