"""What the cluster routes take and give."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, PositiveInt, StringConstraints

from backend.auth.schemas import Request, Schema

HttpAddress = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@]+(/[^\s]*)?$", max_length=300)]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00\n]*$", max_length=500)]


class ClusterCreate(Request):
    """A Ray cluster to send runs to."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["h100-east"])
    address: HttpAddress = Field(examples=["http://ray-head:8265"])
    """Address of its job server (the Ray dashboard)."""
    python: str = Field("python", pattern=r"^[\w./+-]+$", max_length=300, examples=["/opt/foredeck/bin/python"])
    """Python interpreter on its machines that has the workers package."""
    storage_dir: AbsolutePath = Field(examples=["/mnt/shared/foredeck"])
    """Folder that all its machines share."""
    api_url: HttpAddress = Field(examples=["https://foredeck.example.org"])
    """Address of this service as its machines see it."""
    max_concurrent_runs: PositiveInt = 1
    """Further runs wait."""


class Reachability(Schema):
    """Whether the job server answers."""

    state: Literal["reachable", "unreachable", "starting", "not_started"]
    """`not_started`: this machine's own Ray, which starts with the first run."""
    detail: str
    """In words."""
    ray_version: str | None = None


class Resource(Schema):
    """One kind of resource."""

    used: float
    total: float


class ClusterRead(Schema):
    """A Ray cluster."""

    id: UUID
    name: str
    address: str | None
    """Null for this machine's own Ray."""
    python: str
    storage_dir: str
    api_url: str
    max_concurrent_runs: int
    is_embedded: bool
    """It is this machine's own Ray, started when first needed."""
    num_live_runs: int
    """Runs that hold a place now."""
    num_queued_runs: int
    """Runs that wait for a place."""
    created_at: datetime
    reachability: Reachability | None
    """Asked for now; null in answers to changes."""
    resources: dict[str, Resource] | None
    """By Ray's name (CPU, GPU, memory in bytes, ...); null when unknown."""
