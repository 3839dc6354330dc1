"""Webhooks over HTTP, for those who administer a project: addresses and answers may hold credentials."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response

from backend import etag
from backend.auth.guard import Manager, WebhookAdmin
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep, SettingsDep
from backend.etag import IfMatch
from backend.idempotency.route import Idempotent, IdempotentRoute, IdempotentSecret
from backend.webhooks import log, service
from backend.webhooks.schemas import (
    DeliveryDetail,
    DeliveryPage,
    DeliveryRead,
    SecretRotate,
    State,
    WebhookCreate,
    WebhookCreated,
    WebhookPage,
    WebhookRead,
    WebhookUpdate,
)

router = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=IdempotentRoute)


def check_new(body: WebhookCreate, manager: Manager, settings: SettingsDep) -> None:
    """Before the route's transaction begins: names take a while to be resolved."""
    service.check_may_create(manager)
    service.check_url(body.url, settings)


def check_changed(body: WebhookUpdate, _: WebhookAdmin, settings: SettingsDep) -> None:
    if body.url is not None:
        service.check_url(body.url, settings)


@router.get("", operation_id="webhooks_list", summary="List the webhooks of projects that you administer")
def list_webhooks(
    manager: Manager,
    session: SessionDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: Annotated[str | None, Query(max_length=120, description="Those of one project alone")] = None,
) -> WebhookPage:
    return service.list_page(session, manager, limit, cursor, project)


@router.post("", operation_id="webhooks_create", status_code=HTTPStatus.CREATED, summary="Make a webhook")
def create_webhook(
    body: WebhookCreate,
    request: Request,
    response: Response,
    manager: Manager,
    _: Annotated[None, Depends(check_new)],
    session: SessionDep,
    settings: SettingsDep,
    __: IdempotentSecret,
) -> WebhookCreated:
    webhook = service.create(session, settings, body, manager)
    response.headers["Location"] = request.url_for("get_webhook", webhook_id=webhook.id).path
    return webhook


@router.get("/{webhook_id}", operation_id="webhooks_get", summary="Get a webhook", response_model=WebhookRead)
def get_webhook(webhook_id: UUID, request: Request, _: WebhookAdmin, session: SessionDep) -> Response:
    return etag.answer(request, service.read(session, webhook_id), WebhookUpdate)


@router.patch(
    "/{webhook_id}",
    operation_id="webhooks_update",
    summary="Change, disable or enable a webhook",
    response_model=WebhookRead,
)
def update_webhook(
    webhook_id: UUID,
    body: WebhookUpdate,
    request: Request,
    admin: WebhookAdmin,
    _: Annotated[None, Depends(check_changed)],
    session: SessionDep,
    if_match: IfMatch = None,
) -> Response:
    return etag.answer(request, service.update(session, webhook_id, body, admin, if_match), WebhookUpdate)


@router.delete(
    "/{webhook_id}",
    operation_id="webhooks_delete",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Remove a webhook and its deliveries",
)
def delete_webhook(webhook_id: UUID, admin: WebhookAdmin, session: SessionDep) -> None:
    service.remove(session, webhook_id, admin)


@router.post(
    "/{webhook_id}/rotate-secret", operation_id="webhooks_rotate_secret", summary="Give a webhook a new secret"
)
def rotate_secret(
    webhook_id: UUID,
    body: SecretRotate,
    admin: WebhookAdmin,
    session: SessionDep,
    settings: SettingsDep,
    _: IdempotentSecret,
) -> WebhookCreated:
    return service.rotate_secret(session, settings, webhook_id, body, admin)


@router.post(
    "/{webhook_id}/ping", operation_id="webhooks_ping", status_code=HTTPStatus.ACCEPTED, summary="Send a test event"
)
def ping_webhook(webhook_id: UUID, admin: WebhookAdmin, session: SessionDep, _: Idempotent) -> DeliveryRead:
    return log.ping(session, webhook_id, admin)


@router.get(
    "/{webhook_id}/deliveries", operation_id="webhooks_list_deliveries", summary="What was sent, and what became of it"
)
def list_deliveries(
    webhook_id: UUID,
    _: WebhookAdmin,
    session: SessionDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    state: Annotated[State | None, Query(description="Those in one state alone")] = None,
) -> DeliveryPage:
    return log.list_page(session, webhook_id, limit, cursor, state)


@router.get(
    "/{webhook_id}/deliveries/{delivery_id}", operation_id="webhooks_get_delivery", summary="Get a delivery in full"
)
def get_delivery(webhook_id: UUID, delivery_id: UUID, _: WebhookAdmin, session: SessionDep) -> DeliveryDetail:
    return log.read(session, webhook_id, delivery_id)


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    operation_id="webhooks_redeliver",
    status_code=HTTPStatus.ACCEPTED,
    summary="Send a delivery again",
)
def redeliver(
    webhook_id: UUID, delivery_id: UUID, admin: WebhookAdmin, session: SessionDep, _: Idempotent
) -> DeliveryRead:
    return log.redeliver(session, webhook_id, delivery_id, admin)
