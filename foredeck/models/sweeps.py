"""Sweeps: runs that were launched together."""

from datetime import datetime
from typing import Any
from uuid import UUID

from foredeck.models.base import Answer, Page, Versioned
from foredeck.models.runs import RunSummary


class SweepBest(Answer):
    """The run of a sweep whose latest value of a figure is the highest."""

    run_id: UUID
    name: str
    point: dict[str, Any]
    metric: str
    value: float


class SweepFields(Versioned):
    """What is told of every sweep."""

    id: UUID
    name: str
    labels: dict[str, str]
    project: str
    cluster: str
    keys: list[str]
    num_runs: int
    num_runs_by_status: dict[str, int]
    is_ended: bool
    created_at: datetime


class SweepSummary(SweepFields):
    """A sweep in a list."""

    best: SweepBest | None = None
    """By the figure that was asked for; None where no run has measured it yet."""


class Sweep(SweepFields):
    """A sweep with its runs, in the order of their points."""

    notes: str = ""
    runs: list[RunSummary]


class SweepPage(Page[SweepSummary]):
    pass
