"""Sweeps: runs that were launched together."""

from datetime import datetime
from uuid import UUID

from foredeck.models.base import Answer, Page
from foredeck.models.runs import RunSummary


class SweepSummary(Answer):
    """A sweep in a list."""

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


class Sweep(SweepSummary):
    """A sweep with its runs, in the order of their points."""

    runs: list[RunSummary]


class SweepPage(Page[SweepSummary]):
    pass
