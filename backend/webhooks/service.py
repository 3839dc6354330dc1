"""Rules of webhooks."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Session

from backend import etag
from backend.auth import access, audit
from backend.auth.identity import Principal
from backend.cursor import cut, decode
from backend.errors import ApiError, ProblemError, conflict, invalid, not_found
from backend.models import Webhook
from backend.settings import Settings
from backend.webhooks import queue, repository, view
from backend.webhooks.outbox import emit, nudge
from backend.webhooks.receiver import parse
from backend.webhooks.resolve import RefusedAddressError, Resolve, UnresolvedError, addresses_of, resolve
from backend.webhooks.schemas import (
    SecretRotate,
    WebhookCreate,
    WebhookCreated,
    WebhookPage,
    WebhookRead,
    WebhookUpdate,
)
from backend.webhooks.sealing import seal
from backend.webhooks.signing import new_secret

__all__ = [
    "check_may_create",
    "check_url",
    "create",
    "emit",
    "list_page",
    "read",
    "remove",
    "rotate_secret",
    "trim",
    "update",
]

MAX_PER_PROJECT = 20
KEPT = timedelta(days=30)
RESOLVE_TIMEOUT_S = 3.0


def check_url(url: str, settings: Settings, resolve: Resolve = resolve) -> None:
    """Raises ApiError (422) where nothing would be sent. A name that has no address now may have one later: it is asked
    for and checked again at each delivery. Takes a while, so not within a transaction."""
    receiver = parse(url)
    try:
        addresses_of(receiver, settings.webhook_allowed_networks, resolve, RESOLVE_TIMEOUT_S)
    except RefusedAddressError as error:
        raise invalid([ProblemError(pointer="/url", detail=str(error), value=receiver.origin)]) from error
    except UnresolvedError:
        pass


def check_may_create(principal: Principal) -> None:
    """Raises ApiError (403) for one who administers no project at all."""
    if principal.projects("admin") == frozenset():
        raise ApiError(
            HTTPStatus.FORBIDDEN, "Webhooks need the role admin in a project: ask one of its administrators."
        )


def create(session: Session, settings: Settings, body: WebhookCreate, principal: Principal) -> WebhookCreated:
    project = access.project_for(session, principal, body.project, "admin")
    if repository.count_of_project(session, project.id) >= MAX_PER_PROJECT:
        raise conflict(
            f"Project {project.name} has {MAX_PER_PROJECT} webhooks, and may have no more: delete one first."
        )
    secret = new_secret()
    webhook = Webhook(
        project_id=project.id,
        name=body.name,
        url=body.url,
        events=list(body.events),
        secret=seal(secret, settings.encryption_keys),
        created_by_id=principal.user_id,
    )
    repository.insert_webhook(session, webhook)
    detail = {"name": webhook.name, "receiver": parse(webhook.url).origin, "events": webhook.events}
    audit.record(session, principal, "webhook.create", webhook.id, project.id, **detail)
    return view.created(session, webhook, secret)


def list_page(
    session: Session, principal: Principal, limit: int, cursor: str | None, project: str | None
) -> WebhookPage:
    """Of the projects that the caller administers."""
    after = decode(cursor, datetime, UUID) if cursor else None
    rows = repository.list_page(session, limit + 1, after, principal.projects("admin"), project)
    kept, next_cursor = cut(rows, limit, lambda row: (row[0].created_at, row[0].id))
    return WebhookPage(items=view.summaries(session, kept), next_cursor=next_cursor)


def read(session: Session, webhook_id: UUID) -> WebhookRead:
    return view.detail(session, get(session, webhook_id))


def update(
    session: Session, webhook_id: UUID, body: WebhookUpdate, principal: Principal, if_match: str | None = None
) -> WebhookRead:
    webhook = get_locked(session, webhook_id)
    etag.require(if_match, webhook, WebhookUpdate)
    changes = body.model_dump(exclude_none=True)
    for field, value in changes.items():
        setattr(webhook, field, value)
    if changes:
        webhook.updated_at = func.now()
        if "url" in changes or changes.get("is_enabled"):
            webhook.failing_since, webhook.num_failures, webhook.paused_until = None, 0, None
            webhook.disabled_reason = None if webhook.is_enabled else webhook.disabled_reason
        if not webhook.is_enabled:
            session.flush()
            queue.give_up_pending(session, webhook.id)
        _record(session, principal, "update", webhook, fields=sorted(changes))
        nudge(session)
    return view.detail(session, webhook)


def remove(session: Session, webhook_id: UUID, principal: Principal) -> None:
    """With its deliveries. One that is on its way may still arrive."""
    webhook = get_locked(session, webhook_id)
    _record(session, principal, "delete", webhook)
    session.delete(webhook)


def rotate_secret(
    session: Session, settings: Settings, webhook_id: UUID, body: SecretRotate, principal: Principal
) -> WebhookCreated:
    webhook = get_locked(session, webhook_id)
    secret, is_both = new_secret(), body.overlap_s > 0
    webhook.previous_secret = webhook.secret if is_both else None
    webhook.previous_secret_expires_at = datetime.now(UTC) + timedelta(seconds=body.overlap_s) if is_both else None
    webhook.secret = seal(secret, settings.encryption_keys)
    webhook.updated_at = func.now()
    _record(session, principal, "rotate_secret", webhook, overlap_s=body.overlap_s)
    return view.created(session, webhook, secret)


def get(session: Session, webhook_id: UUID) -> Webhook:
    webhook = repository.get(session, webhook_id)
    if webhook is None:
        raise not_found("webhook", webhook_id)
    return webhook


def get_locked(session: Session, webhook_id: UUID) -> Webhook:
    webhook = repository.get_locked(session, webhook_id)
    if webhook is None:
        raise not_found("webhook", webhook_id)
    return webhook


def _record(session: Session, principal: Principal, verb: str, webhook: Webhook, **detail: Any) -> None:
    named = {"name": webhook.name, **detail}
    audit.record(session, principal, f"webhook.{verb}", webhook.id, webhook.project_id, **named)


def trim(session: Session) -> None:
    """Deletes what is old of the delivery log."""
    repository.delete_old_deliveries(session, KEPT)
