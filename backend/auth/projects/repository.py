"""Projects and their members in the database."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sqlalchemy import Row, Select, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from backend.cursor import Key
from backend.models import Project, ProjectMember, Run, User


def insert(session: Session, name: str) -> Project | None:
    """None where there is one of this name."""
    statement = upsert(Project).values(name=name).on_conflict_do_nothing().returning(Project)
    return session.scalars(statement).one_or_none()


def _counted() -> Select[Project, int, int]:
    num_runs = select(func.count()).where(Run.project_id == Project.id).scalar_subquery()
    num_members = select(func.count()).where(ProjectMember.project_id == Project.id).scalar_subquery()
    return select(Project, num_runs, num_members)


def get_counted(session: Session, project_id: UUID) -> Row[Project, int, int]:
    """(project, number of runs, number of members)."""
    return session.execute(_counted().where(Project.id == project_id)).one()


def list_page(
    session: Session, limit: int, after: Key | None, project_ids: Collection[UUID] | None
) -> Sequence[Row[Project, int, int]]:
    """The same of those of the given ids, or of all, by name."""
    statement = _counted().order_by(Project.name).limit(limit)
    if project_ids is not None:
        statement = statement.where(Project.id.in_(project_ids))
    if after:
        statement = statement.where(Project.name > after[0])
    return session.execute(statement).all()


def get_locked(session: Session, name: str) -> Project | None:
    """With its row locked, so that nothing is put into it meanwhile."""
    return session.scalar(select(Project).where(Project.name == name).with_for_update())


def count_runs(session: Session, project_id: UUID) -> int:
    return session.scalars(select(func.count()).where(Run.project_id == project_id)).one()


def list_members(session: Session, project_id: UUID) -> Sequence[Row[str, str, bool]]:
    """(name, role, whether active)."""
    statement = (
        select(User.name.label("user"), ProjectMember.role, User.is_active)
        .join(User, User.id == ProjectMember.user_id)
        .where(ProjectMember.project_id == project_id)
        .order_by(User.name)
    )
    return session.execute(statement).all()


def set_role(session: Session, project_id: UUID, user_id: UUID, role: str) -> None:
    statement = upsert(ProjectMember).values(project_id=project_id, user_id=user_id, role=role)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=[ProjectMember.project_id, ProjectMember.user_id], set_={"role": role}
        )
    )


def delete_member(session: Session, project_id: UUID, user_id: UUID) -> bool:
    """Whether they were one."""
    is_meant = (ProjectMember.project_id == project_id) & (ProjectMember.user_id == user_id)
    return session.execute(delete(ProjectMember).where(is_meant).returning(ProjectMember.user_id)).first() is not None
