"""Who may read which entries of the audit log."""

from http import HTTPStatus

from sqlalchemy.orm import Session

from backend.auth.identity import Principal
from backend.auth.log import repository
from backend.auth.log.schemas import AuditEntryRead, AuditPage
from backend.cursor import cut, decode
from backend.errors import ApiError
from backend.models import AuditEntry


def list_page(
    session: Session, principal: Principal, limit: int, cursor: str | None, **filters: str | None
) -> AuditPage:
    """All of it for one who administers everything, else that of the projects where the caller has the role admin."""
    project_ids = principal.projects("admin")
    if project_ids is not None and not project_ids:
        detail = "The audit log is for those who administer a project, and for tokens of scope admin."
        raise ApiError(HTTPStatus.FORBIDDEN, detail)
    before_id = decode(cursor, int)[0] if cursor else None
    rows = repository.list_page(session, limit + 1, before_id, project_ids, **filters)
    page, next_cursor = cut(rows, limit, lambda row: (row[0].id,))
    return AuditPage(items=[_read(*row) for row in page], next_cursor=next_cursor)


def _read(entry: AuditEntry, project: str | None) -> AuditEntryRead:
    columns = ("id", "time", "actor", "action", "target", "detail", "address", "request_id")
    return AuditEntryRead(project=project, **{name: getattr(entry, name) for name in columns})
