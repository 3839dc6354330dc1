"""Runs as the service answers them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from foredeck.models.base import Answer, Page, Versioned


class RunFields(Versioned):
    """What is told of every run."""

    id: UUID
    name: str
    labels: dict[str, str] = Field(default_factory=dict)
    status: str
    status_reason: str = ""
    is_ended: bool
    project: str = "default"
    cluster: str
    job: str = "grpo"
    stage: str | None = None
    step: int
    num_steps: int
    stage_progress_fraction: float | None = None
    current_attempt: int
    priority: int = 0
    queue_position: int | None = None
    """1 is the next that has its turn on its cluster; None for a run that does not wait."""
    sweep_id: UUID | None = None
    sweep_point: dict[str, Any] | None = None
    """Its values of its sweep's keys."""
    num_active_alarms: int = 0
    gates_verdict: str | None = None
    """`passed`, `failed`, or `pending` until the run has ended and was judged; None for a run without gates."""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_settled(self) -> bool:
        """It has ended, and its gates, if it has some, are judged."""
        return self.is_ended and self.gates_verdict != "pending"


class RunSummary(RunFields):
    """A run in a list."""

    reward: float | None = None
    acceptance_length: float | None = None
    generation_speedup: float | None = None
    validation_accuracy: float | None = None


class Attempt(Answer):
    """One try at a run."""

    number: int
    outcome: str | None = None
    error: str | None = None
    resumed_from_step: int | None = None


class Run(RunFields):
    """A run with everything."""

    config: dict[str, Any]
    config_sha256: str
    notes: str = ""
    eta_s: float | None = None
    latest: dict[str, float | None] = Field(default_factory=dict)
    attempts: list[Attempt] = Field(default_factory=list)
    last_checkpoint_step: int | None = None
    last_checkpoint_path: str | None = None


class RunPage(Page[RunSummary]):
    pass


class Alarm(Answer):
    """Something that is or was wrong with a run."""

    name: str
    title: str
    meaning: str
    what_to_do: str
    is_active: bool
    step: int
    message: str
    ending: str | None = None
    ended_step: int | None = None


class Alarms(Answer):
    num_active: int
    items: list[Alarm]
