"""Says what advanced: rows of `notice` for live streams, written last in the transaction that made them true.

A reader of the notice table must never see id n before every id below n. So the rows are inserted by the session's
`before_commit` hook, as the last statements, under one advisory lock that Postgres lets go only after the commit is
visible. Log lines are followed by id too and are inserted at the same moment.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import event, insert, select, text
from sqlalchemy.orm import Session, SessionTransaction

from backend.db import after_commit
from backend.models import LogLine, Notice, Run
from backend.nudges import sender

NoticeKind = Literal["run", "series", "samples", "alarm", "log"]

_LOCK = text("SELECT pg_advisory_xact_lock(7203914)")
_KEY = "foredeck_announcements"


@dataclass(slots=True)
class _Announcements:
    """What waits in a session for its commit."""

    notices: dict[tuple[UUID, NoticeKind], dict[str, Any]] = field(default_factory=dict)
    log_lines: list[dict[str, Any]] = field(default_factory=list)


def publish(session: Session, run_id: UUID, kind: NoticeKind, body: dict[str, Any]) -> None:
    """Announce a change of a run, should the session's transaction commit; several of a kind become one.

    Merging: a later `run` body overrides key by key; of other kinds lists are united, `from_step` keeps the smallest
    and any other number the largest.
    """
    notices = _of(session).notices
    earlier = notices.get((run_id, kind))
    notices[run_id, kind] = body if earlier is None else _merged(kind, earlier, body)


def append_log(
    session: Session,
    run_id: UUID,
    attempt: int,
    level: Literal["debug", "info", "warning", "error"],
    message: str,
    *,
    emitter: str = "control/0",
    time: datetime | None = None,
) -> None:
    """Add a line to a run's log, should the transaction commit. Its notice follows by itself."""
    line = {"run_id": run_id, "attempt": attempt, "emitter": emitter, "level": level}
    line["message"] = message.replace("\x00", "")  # Postgres has no NUL in text.
    line["time"] = time or datetime.now(UTC)
    _of(session).log_lines.append(line)


def _of(session: Session) -> _Announcements:
    announcements: _Announcements = session.info.setdefault(_KEY, _Announcements())
    return announcements


def _merged(kind: NoticeKind, earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    if kind == "run":
        return earlier | later
    return earlier | {key: _united(key, earlier.get(key), value) for key, value in later.items()}


def _united(key: str, earlier: Any, later: Any) -> Any:
    if earlier is None:
        return later
    if isinstance(later, list):
        return sorted({*earlier, *later})
    return min(earlier, later) if key == "from_step" else max(earlier, later)


@event.listens_for(Session, "before_commit")
def _write(session: Session) -> None:
    announcements: _Announcements | None = session.info.get(_KEY)
    if announcements is None or session.in_nested_transaction():
        return
    session.flush()
    run_ids = {run_id for run_id, _ in announcements.notices} | {line["run_id"] for line in announcements.log_lines}
    # The foreign keys need this share of the run rows. Waiting for it while holding the lock could be a deadlock.
    statement = select(Run.id).where(Run.id.in_(run_ids)).order_by(Run.id).with_for_update(read=True, key_share=True)
    existing = set(session.scalars(statement))
    session.execute(_LOCK)
    _write_log_lines(session, [line for line in announcements.log_lines if line["run_id"] in existing])
    rows = [
        {"run_id": run_id, "kind": kind, "body": body}
        for (run_id, kind), body in announcements.notices.items()
        if run_id in existing
    ]
    if rows:
        session.execute(insert(Notice), rows)
        _wake_streams(session)
    session.info.pop(_KEY)


def _write_log_lines(session: Session, lines: list[dict[str, Any]]) -> None:
    if lines:
        for run_id, line_id in session.execute(insert(LogLine).returning(LogLine.run_id, LogLine.id), lines):
            publish(session, run_id, "log", {"last_id": line_id})


def _wake_streams(session: Session) -> None:
    redis_url = session.info.get("redis_url")
    if redis_url:
        after_commit(session, "wake streams", lambda: sender(redis_url).wake_streams())


@event.listens_for(Session, "after_transaction_end")
def _forget(session: Session, transaction: SessionTransaction) -> None:
    if transaction.parent is None:
        session.info.pop(_KEY, None)
