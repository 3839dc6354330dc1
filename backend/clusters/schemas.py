"""What the cluster routes take and give."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx
from pydantic import AfterValidator, Field, StringConstraints, model_validator

from backend.auth.schemas import Request, Schema
from backend.clusters.code import ClusterCode, InstalledCode, wrong_python
from contract.cluster_check import Finding

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
Module = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=200)]
CheckId = Annotated[str, StringConstraints(pattern=r"^check-[a-z0-9-]{1,80}$")]
Modules = Annotated[list[Module], Field(max_length=100)]
DataDirs = Annotated[list[AbsolutePath], Field(max_length=100)]


class ClusterCreate(Request):
    """A Ray cluster to send runs to."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["h100-east"])
    address: HttpAddress = Field(examples=["http://ray-head:8265"])
    """Address of its job server (the Ray dashboard)."""
    python: Interpreter = Field("python", examples=["/opt/foredeck/bin/python"])
    """Python interpreter on its machines that has the workers package; `python` where the code brings its own."""
    code: ClusterCode = InstalledCode()
    """How the workers package and what it needs come to its machines."""
    reward_modules: Modules = Field([], examples=[["our_rewards"]])
    """Python modules there that runs may take reward functions from; each allows what lies below it."""
    data_dirs: DataDirs = Field([], examples=[["/models", "/data"]])
    """Folders there from which runs may read models and datasets. Beside them, runs read what others of their project
    left in storage_dir, and datasets of the hub."""
    storage_dir: AbsolutePath = Field(examples=["/mnt/shared/foredeck"])
    """Folder that all its machines share."""
    api_url: HttpAddress = Field(examples=["https://foredeck.example.org"])
    """Address of this service as its machines see it."""
    max_concurrent_runs: NumRuns = 1
    """Further runs wait."""
    max_concurrent_runs_per_user: NumRuns | None = None
    """How many of them may be of one user; null for all. Further ones wait, and let those of others pass."""
    max_concurrent_runs_per_project: NumRuns | None = None
    """How many of them may be of one project; null for all."""

    @model_validator(mode="after")
    def _check_python(self) -> "ClusterCreate":
        if problem := wrong_python(self.python, self.code.model_dump()):
            raise ValueError(problem)
        return self


class ClusterUpdate(Request):
    """What may change, also while runs go on: their next attempt and the next question about them follow it. What is
    left out stays."""

    address: HttpAddress | None = None
    python: Interpreter | None = None
    code: ClusterCode | None = None
    reward_modules: Modules | None = None
    data_dirs: DataDirs | None = None
    storage_dir: AbsolutePath | None = None
    """Runs go on from the checkpoints that they find there."""
    api_url: HttpAddress | None = None
    max_concurrent_runs: NumRuns | None = None
    max_concurrent_runs_per_user: NumRuns | None = None
    """Null lifts the limit."""
    max_concurrent_runs_per_project: NumRuns | None = None
    """Null lifts the limit."""

    def changes(self) -> dict[str, Any]:
        """What was given. Nothing follows from null where there has to be a value."""
        lifted = {field: None for field in _LIMITS & self.model_fields_set if getattr(self, field) is None}
        return self.model_dump(exclude_none=True) | lifted


_LIMITS = frozenset({"max_concurrent_runs_per_user", "max_concurrent_runs_per_project"})


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
    code: ClusterCode
    """How the workers package and what it needs come to its machines."""
    reward_modules: list[str]
    """Python modules that runs may take reward functions from."""
    data_dirs: list[str] | None
    """Folders from which runs may read models and datasets; null for any."""
    storage_dir: str
    api_url: str
    max_concurrent_runs: int
    max_concurrent_runs_per_user: int | None
    max_concurrent_runs_per_project: int | None
    is_embedded: bool
    """It is this machine's own Ray, started when first needed."""
    num_live_runs: int
    """Runs that hold a place now."""
    num_queued_runs: int
    """Runs that wait for a place."""
    created_at: datetime
    reachability: Reachability | None
    """Asked for now; null in answers to later changes."""
    resources: dict[str, Resource] | None
    """By Ray's name (CPU, GPU, memory in bytes, ...); null when unknown."""


class ClusterShare(Schema):
    """How much of a cluster is a user's or a project's."""

    name: str | None
    """Null for runs of users that are gone."""
    num_live_runs: int
    """Runs that hold a place now."""
    num_queued_runs: int
    """Runs that wait for a place."""


class ClusterShares(Schema):
    """Who uses a cluster now, as far as the caller may see their runs; who uses most first."""

    users: list[ClusterShare]
    projects: list[ClusterShare]


class ClusterCheckStarted(Schema):
    """A job that looks at the cluster's machines has been handed to it."""

    id: str = Field(examples=["check-h200-3f2a9c"])
    """Ask for its result with it."""


class ClusterCheck(Schema):
    """What a check has found so far."""

    id: str
    state: Literal["pending", "running", "passed", "failed"]
    findings: list[Finding]
    """Empty until the job has ended."""
    log: list[str]
    """The job's last lines, where it ended without findings: installing its packages may have failed."""
