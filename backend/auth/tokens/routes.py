"""Tokens over HTTP."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter

from backend.auth.guard import Reader, Writer
from backend.auth.tokens import service
from backend.auth.tokens.schemas import TokenCreate, TokenCreated, TokenPage
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep
from backend.idempotency.route import IdempotentRoute, IdempotentSecret

router = APIRouter(prefix="/tokens", tags=["tokens"], route_class=IdempotentRoute)


@router.get("", operation_id="tokens_list", summary="List your API tokens; all, if you administer everything")
def list_tokens(reader: Reader, session: SessionDep, limit: Limit = 50, cursor: Cursor = None) -> TokenPage:
    return service.list_visible(session, reader, limit, cursor)


@router.post("", operation_id="tokens_create", status_code=HTTPStatus.CREATED, summary="Make an API token of your own")
def create_token(body: TokenCreate, writer: Writer, session: SessionDep, _: IdempotentSecret) -> TokenCreated:
    return service.create(session, body, writer)


@router.delete(
    "/{token_id}", operation_id="tokens_delete", status_code=HTTPStatus.NO_CONTENT, summary="Revoke an API token"
)
def delete_token(token_id: UUID, writer: Writer, session: SessionDep) -> None:
    service.revoke(session, token_id, writer)
