"""Where runs go."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.orm import Mapped, mapped_column

from backend.models.base import Base, now_column


class Cluster(Base):
    """Where runs go: a Ray cluster, by the address of its job server."""

    __tablename__ = "cluster"

    id: Mapped[UUID] = mapped_column(primary_key=True, server_default=func.gen_random_uuid())
    name: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str | None]
    """http(s) address of the Ray job server; null for the embedded cluster, which is started when first needed."""
    python: Mapped[str]
    """Python interpreter on the cluster that has the workers package."""
    storage_dir: Mapped[str]
    """Folder that all machines of the cluster share, for checkpoints, spools and caches."""
    api_url: Mapped[str]
    """Base URL of this service as the cluster sees it."""
    max_concurrent_runs: Mapped[int] = mapped_column(server_default="1")
    max_concurrent_runs_per_user: Mapped[int | None]
    """Of all its places, how many the runs of one user may hold; null for all."""
    max_concurrent_runs_per_project: Mapped[int | None]
    code: Mapped[dict[str, Any]] = mapped_column(server_default='{"kind": "installed"}')
    """How our code comes to its machines: see backend.clusters.code."""
    reward_modules: Mapped[list[str]] = mapped_column(server_default="{}")
    """Python modules that runs may take reward functions from."""
    data_dirs: Mapped[list[str] | None]
    """Folders from which runs may read models and datasets, beside what runs have left; null for any."""
    created_at: Mapped[datetime] = now_column()
