"""Clusters in the database."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.models import Cluster, Run
from backend.runs.state import LIVE, Status


def get(session: Session, name: str) -> Cluster | None:
    return session.scalar(select(Cluster).where(Cluster.name == name))


def list_all(session: Session) -> Sequence[Cluster]:
    return session.scalars(select(Cluster).order_by(Cluster.created_at, Cluster.name)).all()


def insert_cluster(session: Session, **values: object) -> Cluster | None:
    """None when there is one of this name."""
    statement = insert(Cluster).values(**values).on_conflict_do_nothing().returning(Cluster)
    return session.scalar(statement)


def count_runs(session: Session, cluster: Cluster) -> tuple[int, int, int]:
    """(runs that hold a place, runs that wait for one, all runs)."""
    statement = select(
        func.count().filter(Run.status.in_(LIVE)), func.count().filter(Run.status == Status.QUEUED), func.count()
    ).where(Run.cluster_id == cluster.id)
    num_live, num_queued, num_all = session.execute(statement).one()
    return num_live, num_queued, num_all
