"""What the sweep routes take and give."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from backend.auth.schemas import Id, Name, Request, Schema
from backend.cursor import Page
from backend.gates.schemas import Gates
from backend.runs.schemas import (
    EXAMPLE_CONFIG,
    ClusterName,
    ExampleName,
    Labels,
    Notes,
    Overrides,
    Priority,
    ProjectName,
    RunSummary,
)
from backend.runs.state import Status
from contract.config import RunConfig

SweepKey = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length=200)]
Values = Annotated[list[Any], Field(min_length=1, max_length=10_000)]
Axes = Annotated[dict[SweepKey, Values], Field(min_length=1, max_length=16)]
Points = Annotated[list[Annotated[dict[SweepKey, Any], Field(min_length=1)]], Field(min_length=1, max_length=10_000)]


class SweepCreate(Request):
    """Runs to launch together: a configuration, and the values of the keys in which they differ."""

    name: Name = Field(examples=["draft lengths"])
    """What people call it; the runs' names begin with it."""
    config: RunConfig | None = Field(None, examples=[EXAMPLE_CONFIG])
    """What the runs have in common: a configuration, or in its place an `example` or a `base_run_id`."""
    example: ExampleName | None = None
    """Name of a ready configuration: GET /run-config/examples has them."""
    base_run_id: Id | None = None
    """A run whose configuration the runs start from."""
    overrides: Overrides = Field(default_factory=dict)
    """JSON merge patch (RFC 7396) on what they have in common."""
    axes: Axes | None = Field(None, examples=[{"drafter.draft_length": [1, 3, 5]}])
    """Values by key: a run for every combination of them. An object is merged in, null is the default."""
    points: Points | None = None
    """In place of `axes`: the values of each run by key."""
    labels: Labels = Field(default_factory=dict)
    """Of each run."""
    notes: Notes = ""
    project: ProjectName | None = None
    """Name of the project it belongs to; without one `default`, or the only project you can launch runs in."""
    cluster: ClusterName = "local"
    """Name of the cluster that carries its runs."""
    priority: Priority = 0
    """Of each run in the queue."""
    max_attempts: int = Field(3, ge=1, le=20)
    """Of each run."""
    gates: Gates = Field([], examples=[[{"assertion": "acceptance_length >= 2.8"}]])
    """What each run has to come to."""
    max_concurrent: int | None = Field(None, ge=1, le=10_000)
    """How many of its runs may go on at once; null for as many as the cluster lets."""


class SweepUpdate(Request):
    """What may change after the launch; what is left out stays. Its runs keep the labels and notes that they have."""

    name: Name | None = None
    labels: Labels | None = None
    notes: Notes | None = None


BestBy = Literal["reward", "acceptance_length", "generation_speedup", "validation_accuracy"]
"""The figures of a run in a list, of all of which more is better."""


class SweepBest(Schema):
    """The run of a sweep whose latest value of a figure is the highest."""

    run_id: UUID
    name: str
    """Of the run."""
    point: dict[str, Any]
    """Its values of the sweep's keys."""
    metric: BestBy
    value: float


class _SweepFields(Schema):
    id: UUID
    name: str
    labels: dict[str, str]
    project: str
    """Name of its project."""
    cluster: str
    """Name of its cluster."""
    keys: list[str]
    """What its runs differ in."""
    max_concurrent: int | None
    num_runs: int
    num_runs_by_status: dict[Status, int]
    """Statuses that no run has are left out."""
    is_ended: bool
    """All its runs have ended."""
    created_by: str | None
    """Name of the user."""
    created_at: datetime


class SweepSummary(_SweepFields):
    """A sweep in a list."""

    best: SweepBest | None
    """The best run by the figure that was asked for; null where none has measured it yet."""


class SweepPage(Page[SweepSummary]):
    """Sweeps, newest first."""


class SweepRead(_SweepFields):
    """A sweep with its runs: each tells its point and the latest values of four series."""

    notes: str
    config: dict[str, Any]
    """What its runs have in common, before their points are laid over it."""
    runs: list[RunSummary]
    """In the order of their points."""
