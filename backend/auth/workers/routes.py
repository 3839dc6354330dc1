"""Tokens of workers over HTTP."""

from http import HTTPStatus

from fastapi import APIRouter

from backend.auth.guard import Starter
from backend.auth.workers import service
from backend.deps import SessionDep
from contract.telemetry.events import WorkerToken

router = APIRouter(tags=["telemetry"])


@router.post(
    "/ingest/token",
    operation_id="worker_tokens_create",
    status_code=HTTPStatus.CREATED,
    summary="Exchange a job's starter for the token that its worker reports with",
)
def create_worker_token(starter: Starter, session: SessionDep) -> WorkerToken:
    """Of several tokens of an attempt the last one works, and once it has been used, the starter does not any more."""
    return service.exchange(session, starter)
