"""Tokens of workers in the database."""

from datetime import timedelta
from typing import cast
from uuid import UUID

from sqlalchemy import CursorResult, Update, any_, delete, func, literal, or_, select, update
from sqlalchemy.orm import Session

from backend.models import ApiToken, Attempt, Run

_STARTS = literal("start") == any_(ApiToken.scopes)
_REPORTS = literal("ingest") == any_(ApiToken.scopes)
_NOW = func.clock_timestamp()
"""Later than every use of a token so far, whichever of the two transactions began first."""
_UNSYNCHRONIZED = {"synchronize_session": False}


def lock_attempt(session: Session, run_id: UUID, attempt: int) -> None:
    """Of two who exchange a starter, or use what it was exchanged for, the second waits for the first."""
    is_it = (Attempt.run_id == run_id) & (Attempt.number == attempt)
    session.execute(select(Attempt.number).where(is_it).with_for_update(key_share=True))


def get_worker_token(session: Session, prefix: str) -> ApiToken | None:
    """Whether it still works or not."""
    return session.scalar(select(ApiToken).where(ApiToken.prefix == prefix, ApiToken.run_id.is_not(None)))


def get_unrevoked(session: Session, token_id: UUID | None) -> ApiToken | None:
    """As it is now, not as the session remembers it."""
    statement = select(ApiToken).where(ApiToken.id == token_id, ApiToken.revoked_at.is_(None))
    return session.scalar(statement, execution_options={"populate_existing": True})


def note_first_use(session: Session, token_id: UUID) -> bool:
    """False when it has been revoked meanwhile."""
    is_good = (ApiToken.id == token_id) & ApiToken.revoked_at.is_(None)
    return _count(session, update(ApiToken).where(is_good).values(last_used_at=func.now())) == 1


def revoke_starters(session: Session, run_id: UUID, attempt: int) -> None:
    are_over = (ApiToken.run_id == run_id) & (ApiToken.attempt == attempt) & _STARTS
    statement = update(ApiToken).where(are_over, ApiToken.revoked_at.is_(None)).values(revoked_at=_NOW)
    session.execute(statement, execution_options=_UNSYNCHRONIZED)


def revoke_unused(session: Session, run_id: UUID, attempt: int) -> int:
    """The attempt's tokens that nobody has reported with; how many there were."""
    are_the_attempts = (ApiToken.run_id == run_id) & (ApiToken.attempt == attempt) & _REPORTS
    are_good = ApiToken.last_used_at.is_(None) & ApiToken.revoked_at.is_(None)
    return _count(session, update(ApiToken).where(are_the_attempts, are_good).values(revoked_at=_NOW))


def note_refusal(session: Session, token_id: UUID) -> bool:
    """Whether it is the first time that the revoked token was presented."""
    is_news = or_(ApiToken.last_used_at.is_(None), ApiToken.last_used_at <= ApiToken.revoked_at)
    statement = update(ApiToken).where(ApiToken.id == token_id, ApiToken.revoked_at.is_not(None), is_news)
    return _count(session, statement.values(last_used_at=_NOW)) == 1


def retire(session: Session, run_id: UUID, within_s: float) -> None:
    """The run's tokens so far expire: a new starter takes their place."""
    expires_at = func.now() + timedelta(seconds=within_s)
    is_old = (ApiToken.run_id == run_id) & or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > expires_at)
    statement = update(ApiToken).where(is_old).values(expires_at=expires_at)
    session.execute(statement, execution_options=_UNSYNCHRONIZED)


def renew_starters(session: Session, lifetime_s: float) -> None:
    """Of the attempts whose workers are still waited for."""
    awaited = select(Run.id).where(Run.status == "dispatching", Run.current_attempt == ApiToken.attempt)
    is_awaited = ApiToken.run_id.in_(awaited.correlate(ApiToken)) & _STARTS & ApiToken.revoked_at.is_(None)
    statement = update(ApiToken).where(is_awaited).values(expires_at=func.now() + timedelta(seconds=lifetime_s))
    session.execute(statement, execution_options=_UNSYNCHRONIZED)


def delete_over(session: Session, ended_for_s: float) -> None:
    """Those that have expired, and those of runs that ended so long ago that nothing can be left to deliver."""
    ended = select(Run.id).where(Run.ended_at < func.now() - timedelta(seconds=ended_for_s))
    is_over = ApiToken.run_id.in_(ended) | (ApiToken.run_id.is_not(None) & (ApiToken.expires_at < func.now()))
    session.execute(delete(ApiToken).where(is_over), execution_options=_UNSYNCHRONIZED)


def _count(session: Session, statement: Update) -> int:
    result = session.execute(statement, execution_options=_UNSYNCHRONIZED)
    return cast("CursorResult[object]", result).rowcount
