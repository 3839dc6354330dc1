"""Clusters in the database."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from backend.models import Cluster, Project, Run, User
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


def list_shares_of_users(
    session: Session, cluster: Cluster, project_ids: Collection[UUID] | None
) -> Sequence[Row[str | None, int, int]]:
    """(name, runs that hold a place, runs that wait for one), most first; of runs in the given projects, or in all."""
    return _list_shares(session, cluster, project_ids, User.name, User.id == Run.created_by_id)


def list_shares_of_projects(
    session: Session, cluster: Cluster, project_ids: Collection[UUID] | None
) -> Sequence[Row[str | None, int, int]]:
    """The same by project."""
    return _list_shares(session, cluster, project_ids, Project.name, Project.id == Run.project_id)


def _list_shares(
    session: Session,
    cluster: Cluster,
    project_ids: Collection[UUID] | None,
    name: InstrumentedAttribute[str],
    is_its: ColumnElement[bool],
) -> Sequence[Row[str | None, int, int]]:
    is_live, is_queued = Run.status.in_(LIVE), Run.status == Status.QUEUED
    live, queued = func.count().filter(is_live), func.count().filter(is_queued)
    statement = (
        select(name, live, queued)
        .select_from(Run)
        .outerjoin(name.class_, is_its)
        .where(Run.cluster_id == cluster.id, or_(is_live, is_queued))
        .group_by(name)
        .order_by(live.desc(), queued.desc(), name)
    )
    if project_ids is not None:
        statement = statement.where(Run.project_id.in_(project_ids))
    return session.execute(statement).all()
