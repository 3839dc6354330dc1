"""What the command line reads of the service's answers; anything else in them is left alone."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RunSummary(Answer):
    """A run in a list."""

    id: UUID
    name: str
    status: str
    status_reason: str = ""
    is_ended: bool
    cluster: str
    job: str = "grpo"
    stage: str | None = None
    step: int
    num_steps: int
    stage_progress_fraction: float | None = None
    current_attempt: int
    num_active_alarms: int = 0
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
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


class Run(RunSummary):
    """A run with everything."""

    config: dict[str, Any]
    config_sha256: str
    labels: dict[str, str] = {}
    notes: str = ""
    eta_s: float | None = None
    latest: dict[str, float | None] = {}
    attempts: list[Attempt] = []
    last_checkpoint_step: int | None = None
    last_checkpoint_path: str | None = None


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


class RunPage(Answer):
    items: list[RunSummary]
    next_cursor: str | None = None


class LogLine(Answer):
    """One line of a run's log."""

    id: int
    attempt: int
    emitter: str
    time: datetime
    level: str
    message: str


class LogPage(Answer):
    items: list[LogLine]
    last_id: int | None = None


class LoginLink(Answer):
    url: str
    expires_at: datetime


class CreatedToken(Answer):
    id: UUID
    name: str
    scopes: list[str]
    token: str
    expires_at: datetime | None = None


class Reachability(Answer):
    """Whether a cluster's job server answers."""

    state: str
    detail: str


class Resource(Answer):
    used: float
    total: float


class Cluster(Answer):
    """A Ray cluster."""

    name: str
    address: str | None = None
    code: dict[str, Any] = {}
    reward_modules: list[str] = []
    num_live_runs: int = 0
    max_concurrent_runs: int = 1
    reachability: Reachability | None = None
    resources: dict[str, Resource] | None = None


class CheckStarted(Answer):
    id: str


class Finding(Answer):
    """One thing that a check looked at."""

    name: str
    is_ok: bool
    detail: str


class ClusterCheck(Answer):
    """What a check of a cluster has found so far."""

    id: str
    state: str
    findings: list[Finding] = []
    log: list[str] = []

    @property
    def is_ended(self) -> bool:
        return self.state in {"passed", "failed"}
