"""The outbox: work that a committed transaction has promised, and the leases under which it is done.

A row is claimed under FOR UPDATE SKIP LOCKED with a token and an expiry. Its work is done outside any transaction. Only
the holder of the token can then finish or postpone it: whoever comes late, after the lease was taken over, changes
nothing. Where a transaction locks both, it locks the run's row first and the outbox row second.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast
from uuid import UUID, uuid4

from sqlalchemy import CursorResult, Select, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.db import after_commit
from backend.models import Outbox, PeriodicJob, Run
from backend.nudges import sender

Kind = Literal["dispatch", "stop", "gates"]
_UNSYNCHRONIZED = {"synchronize_session": False}
NUM_SCOUTS = 3
"""Of the runs that wait for a place: more than one, so that a run that cannot be looked at keeps back no others."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed row."""

    id: int
    token: UUID
    kind: Kind
    run_id: UUID
    attempt: int
    num_tries: int
    """This one counted."""


def add(session: Session, kind: Kind, run_id: UUID, attempt: int, due_in_s: float = 0) -> None:
    """Promises work, should the transaction commit; promising it twice is promising it once."""
    due_at = func.now() + timedelta(seconds=due_in_s)
    row = {"kind": kind, "run_id": run_id, "attempt": attempt, "due_at": due_at}
    session.execute(insert(Outbox).values(**row).on_conflict_do_nothing())
    if due_in_s == 0:
        nudge(session)


def claim(session: Session, lease_s: float) -> Lease | None:
    """The work that is due longest and that nobody holds."""
    is_free = or_(Outbox.lock_expires_at.is_(None), Outbox.lock_expires_at < func.now())
    due = select(Outbox.id).where(Outbox.due_at <= func.now(), is_free).order_by(Outbox.due_at, Outbox.id).limit(1)
    values = {
        "lock_token": uuid4(),
        "lock_expires_at": func.now() + timedelta(seconds=lease_s),
        "num_tries": Outbox.num_tries + 1,
    }
    claimed = due.with_for_update(skip_locked=True).scalar_subquery()
    row = session.execute(
        update(Outbox).where(Outbox.id == claimed).values(**values).returning(Outbox), execution_options=_UNSYNCHRONIZED
    ).scalar_one_or_none()
    if row is None:
        return None
    return Lease(row.id, values["lock_token"], cast(Kind, row.kind), row.run_id, row.attempt, row.num_tries)  # type: ignore[arg-type]


def is_held(session: Session, lease: Lease) -> bool:
    """Whether the lease is still the caller's; if so, it stays so until the transaction ends."""
    mine = (Outbox.id == lease.id) & (Outbox.lock_token == lease.token)
    return session.scalar(select(Outbox.id).where(mine).with_for_update()) is not None


def renew(session: Session, lease: Lease, lease_s: float) -> bool:
    """The lease lasts as long again from now. False when it has passed to somebody else."""
    mine = (Outbox.id == lease.id) & (Outbox.lock_token == lease.token)
    values = {"lock_expires_at": func.now() + timedelta(seconds=lease_s)}
    return _count(session.execute(update(Outbox).where(mine).values(**values), execution_options=_UNSYNCHRONIZED)) == 1


def finish(session: Session, lease: Lease) -> bool:
    """The work is done. False when the lease has passed to somebody else, and nothing was changed."""
    mine = (Outbox.id == lease.id) & (Outbox.lock_token == lease.token)
    return _count(session.execute(delete(Outbox).where(mine), execution_options=_UNSYNCHRONIZED)) == 1


def postpone(session: Session, lease: Lease, after_s: float, error: str | None = None) -> bool:
    """The work has to be tried again later. False when the lease has passed to somebody else."""
    mine = (Outbox.id == lease.id) & (Outbox.lock_token == lease.token)
    values = {
        "due_at": func.now() + timedelta(seconds=after_s),
        "lock_token": None,
        "lock_expires_at": None,
        "last_error": error,
    }
    return _count(session.execute(update(Outbox).where(mine).values(**values), execution_options=_UNSYNCHRONIZED)) == 1


def forget(session: Session, run_id: UUID, kind: Kind | None = None) -> None:
    """Nothing is left to do for a run, or nothing of a kind; whoever holds a lease on it finds it gone."""
    statement = delete(Outbox).where(Outbox.run_id == run_id)
    if kind is not None:
        statement = statement.where(Outbox.kind == kind)
    session.execute(statement, execution_options=_UNSYNCHRONIZED)


def is_leased(session: Session, kind: Kind, run_id: UUID) -> bool:
    """Whether somebody is at such work at this moment."""
    is_it = (Outbox.run_id == run_id) & (Outbox.kind == kind) & (Outbox.lock_expires_at > func.now())
    return session.scalar(select(Outbox.id).where(is_it).limit(1)) is not None


def wake_waiting(session: Session, cluster_id: UUID) -> None:
    """A place on the cluster becomes free: of the runs that wait for one, some are due with the commit. Whoever looks
    at one of them learns whose turn it is, and wakes these.

    Waits for whoever looks at a waiting run at this moment, who may see the place still taken and postpone the run. The
    rows are locked in one order, and nobody who holds one of them waits for a run's row or a cluster's but its own.
    """
    waiting = (
        select(Outbox.id)
        .join(Run, Run.id == Outbox.run_id)
        .where(Run.cluster_id == cluster_id, Run.status == "queued", Outbox.kind == "dispatch")
        .order_by(Outbox.id)
    )
    session.execute(waiting.with_for_update(of=Outbox))
    # Read anew: some of them may have had their turn while this waited for them.
    _wake(session, waiting.limit(NUM_SCOUTS))


def wake(session: Session, run_ids: Collection[UUID]) -> None:
    """Their turn has come: those of these waiting runs that are not due yet are so with the commit."""
    asleep = (Outbox.run_id.in_(run_ids)) & (Outbox.kind == "dispatch") & (Outbox.due_at > func.now())
    _wake(session, select(Outbox.id).where(asleep).order_by(Outbox.id).with_for_update())


def _wake(session: Session, ids: Select[int]) -> None:
    statement = update(Outbox).where(Outbox.id.in_(ids.scalar_subquery())).values(due_at=func.now())
    session.execute(statement, execution_options=_UNSYNCHRONIZED)
    nudge(session)


def begin_periodic(session: Session, name: str, at_least_s: float) -> bool:
    """Whether it is the caller's turn to do a periodic job: nobody has begun it for so long."""
    is_due = PeriodicJob.started_at <= func.now() - timedelta(seconds=at_least_s)
    statement = (
        insert(PeriodicJob)
        .values(name=name, started_at=func.now())
        .on_conflict_do_update(index_elements=["name"], set_={"started_at": func.now()}, where=is_due)
        .returning(PeriodicJob.name)
    )
    return session.scalar(statement) is not None


def nudge(session: Session, delay_s: float = 0) -> None:
    """Wakes a Celery worker after the commit. Lost, it costs the time until the next look of the reconciler."""
    redis_url = session.info.get("redis_url")
    if redis_url:
        after_commit(session, f"dispatch in {delay_s} s", lambda: sender(redis_url).send("dispatch", delay_s))


def _count(result: object) -> int:
    return cast("CursorResult[object]", result).rowcount
