"""The audit log over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from backend.auth.guard import Manager
from backend.auth.log import service
from backend.auth.log.schemas import AuditPage
from backend.cursor import Cursor, Limit
from backend.deps import SessionDep

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", operation_id="audit_list", summary="Who changed what, newest first")
def list_entries(
    manager: Manager,
    session: SessionDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    actor: Annotated[str | None, Query(max_length=300, description="As an entry names it, or a user's name")] = None,
    action: Annotated[str | None, Query(max_length=100, description="run.launch, or run for all of run.*")] = None,
    target: Annotated[str | None, Query(max_length=300, description="An id or a name, as an entry names it")] = None,
    project: Annotated[str | None, Query(max_length=63, description="Name of a project")] = None,
) -> AuditPage:
    return service.list_page(
        session, manager, limit, cursor, actor=actor, action=action, target=target, project=project
    )
