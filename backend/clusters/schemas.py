"""What the cluster routes take and give."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import httpx
from pydantic import AfterValidator, Field, StringConstraints

from backend.auth.schemas import Request, Schema

MAX_PORT = 65_535


def _checked(address: str) -> str:
    """Raises ValueError for what no request could be sent to."""
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError(f"is no address: {error}") from error
    if not url.host or url.query or url.fragment:
        raise ValueError("must look like http://host:8265")
    if url.port is not None and not 1 <= url.port <= MAX_PORT:
        raise ValueError(f"has the port {url.port}: ports are 1 to {MAX_PORT}")
    return address


HttpAddress = Annotated[
    str, StringConstraints(pattern=r"^https?://[^\s/@]+(/[^\s]*)?$", max_length=300), AfterValidator(_checked)
]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/[^\x00\n]*$", max_length=500)]


Interpreter = Annotated[str, StringConstraints(pattern=r"^[\w./+-]+$", max_length=300)]
NumRuns = Annotated[int, Field(ge=1, le=10_000)]


class ClusterCreate(Request):
    """A Ray cluster to send runs to."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["h100-east"])
    address: HttpAddress = Field(examples=["http://ray-head:8265"])
    """Address of its job server (the Ray dashboard)."""
    python: Interpreter = Field("python", examples=["/opt/foredeck/bin/python"])
    """Python interpreter on its machines that has the workers package."""
    storage_dir: AbsolutePath = Field(examples=["/mnt/shared/foredeck"])
    """Folder that all its machines share."""
    api_url: HttpAddress = Field(examples=["https://foredeck.example.org"])
    """Address of this service as its machines see it."""
    max_concurrent_runs: NumRuns = 1
    """Further runs wait."""


class ClusterUpdate(Request):
    """What may change, also while runs go on: their next attempt and the next question about them follow it. What is
    left out stays."""

    address: HttpAddress | None = None
    python: Interpreter | None = None
    storage_dir: AbsolutePath | None = None
    """Runs go on from the checkpoints that they find there."""
    api_url: HttpAddress | None = None
    max_concurrent_runs: NumRuns | None = None


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
