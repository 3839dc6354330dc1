"""Sweeps: runs that differ in some keys of their configuration."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, func
from sqlalchemy.orm import Mapped, mapped_column, relationship

from backend.models.auth import Project
from backend.models.base import Base, now_column
from backend.models.clusters import Cluster


class Sweep(Base):
    """A group of runs that were launched together. Where it stands is told by its runs alone."""

    __tablename__ = "sweep"
    __table_args__ = (Index("ix_sweep_project_id_created_at_id", "project_id", "created_at", "id"),)

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    project_id: Mapped[UUID] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    labels: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    notes: Mapped[str] = mapped_column(server_default="")
    cluster_id: Mapped[UUID] = mapped_column(ForeignKey("cluster.id"))
    config: Mapped[dict[str, Any]]
    """What its runs have in common: the configuration before their points are laid over it."""
    keys: Mapped[list[str]]
    """What they differ in: `["drafter.draft_length"]`."""
    max_concurrent: Mapped[int | None]
    """How many of its runs may hold a place at once; null for as many as the cluster lets."""
    created_by_id: Mapped[UUID | None] = mapped_column(ForeignKey("user_account.id", ondelete="SET NULL"))
    created_at: Mapped[datetime] = now_column()

    project: Mapped[Project] = relationship(lazy="joined")
    cluster: Mapped[Cluster] = relationship(lazy="joined")
