"""What the run routes take and give."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, PositiveInt, StringConstraints

from backend.auth.schemas import Id, Name, Request, Schema
from backend.cursor import Page
from backend.gates.schemas import GateRead, Gates, GatesVerdict
from backend.runs.state import Status
from contract.config import RunConfig
from contract.sizing.memory import MemoryEstimate

MAX_PRIORITY = 100

EXAMPLE_CONFIG: dict[str, Any] = {
    "task": {"kind": "arithmetic", "num_terms": 4},
    "drafter": {"kind": "eagle3", "draft_length": 3},
    "grpo": {"num_steps": 40},
}


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not hold NUL characters")
    return text


LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=200), AfterValidator(_storable)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=32, examples=[{"team": "post-training"}])]
ClusterName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(_storable)]
ProjectName = ClusterName
ExampleName = Annotated[str, StringConstraints(min_length=1, max_length=120), AfterValidator(_storable)]
Overrides = dict[str, Any]
Priority = Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]
Notes = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_storable)]


class RunCreate(Request):
    """A run to launch: with a configuration of its own, or that of an example."""

    name: Name = Field(examples=["eagle3 k=3"])
    """What people call it; need not be unique."""
    config: RunConfig | None = Field(None, examples=[EXAMPLE_CONFIG])
    """What the run computes; what is left out gets its default. Needed where no `example` is named."""
    example: ExampleName | None = Field(None, examples=["arithmetic-eagle3"])
    """Name of a ready configuration, in place of `config`: GET /run-config/examples has them."""
    overrides: Overrides = Field({}, examples=[{"drafter": {"draft_length": 5}}])
    """JSON merge patch (RFC 7396) on `config` or on the example's configuration."""
    labels: Labels = Field(default_factory=dict)
    """For finding it again."""
    notes: Notes = ""
    """Free text."""
    project: ProjectName | None = None
    """Name of the project it belongs to; without one `default`, or the only project you can launch runs in."""
    cluster: ClusterName = "local"
    """Name of the cluster that carries it."""
    priority: Priority = 0
    """In the queue of its cluster: each level is worth ten minutes of waiting. Above 50 is for those who administer its
    project."""
    max_attempts: int = Field(3, ge=1, le=20)
    """The run fails once so many attempts have crashed or failed without a new checkpoint. Those that brought one, and
    those that the cluster ended in good order, do not count."""
    cloned_from_id: Id | None = None
    """The run whose configuration this one started from."""
    gates: Gates = Field([], examples=[[{"assertion": "acceptance_length >= 2.8"}]])
    """What it has to come to: judged when it has ended."""


class RunClone(Request):
    """A run like another one. What is left out is taken from the other one."""

    name: Name | None = None
    """Without one: the other run's name and `(clone)`."""
    overrides: Overrides = Field({}, examples=[{"drafter": {"draft_length": 5}}])
    """JSON merge patch (RFC 7396) on the other run's configuration."""
    labels: Labels | None = None
    notes: Notes | None = None
    project: ProjectName | None = None
    cluster: ClusterName | None = None
    priority: Priority = 0
    """In the queue; the other run's is not taken over."""
    max_attempts: int | None = Field(None, ge=1, le=20)
    gates: Gates | None = None


class RunUpdate(Request):
    """What may change after the launch; what is left out stays."""

    name: Name | None = None
    labels: Labels | None = None
    notes: Notes | None = None
    priority: Priority | None = None
    """Only while the run waits in the queue."""


class AttemptRead(Schema):
    """One try at a run: one Ray job."""

    number: PositiveInt
    submission_id: str
    """Id of its Ray job."""
    outcome: Literal["succeeded", "failed", "stopped", "crashed"] | None
    """Null while it goes on."""
    error: str | None
    resumed_from_step: int | None
    """Step of the checkpoint it went on from."""
    last_checkpoint_step: int | None
    """Of its own checkpoints; null when it has brought none beyond those of earlier attempts."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class _RunFields(Schema):
    id: UUID
    name: str
    labels: dict[str, str]
    status: Status
    status_reason: str
    """One sentence for people: why it is in this status."""
    is_ended: bool
    """It has succeeded, failed or been stopped, and will not change any more."""
    is_stop_requested: bool
    project: str
    """Name of its project."""
    cluster: str
    """Name of its cluster."""
    job: Literal["grpo", "draft_training"]
    """What it does: the whole training, or only that of a draft."""
    stage: str | None
    """What the worker is doing."""
    step: int
    """The GRPO step in progress; 0 during set-up."""
    num_steps: int
    """0 where the job has no steps, as draft training."""
    stage_progress_fraction: float | None
    """How far a long stage has come."""
    current_attempt: int
    """0 before the first dispatch."""
    priority: int
    """In the queue: each level is worth ten minutes of waiting."""
    queue_position: int | None
    """1 is the next of those that wait for a place on its cluster; null where it does not wait. A run that a limit of
    its user, project or sweep keeps back lets others pass."""
    sweep_id: UUID | None
    """The sweep that it is part of."""
    sweep_point: dict[str, Any] | None
    """Its values of the sweep's keys."""
    gates_verdict: GatesVerdict | None
    """What came of its gates: pending until it has ended and was judged; null where there is nothing to judge."""
    num_active_alarms: int
    """What is wrong with it now, or was when it ended; GET /runs/{id}/alarms says what to do."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime


class RunSummary(_RunFields):
    """A run in a list, with the latest value of four series; null where nothing was measured yet."""

    reward: float | None
    """Mean reward of the latest step's responses."""
    acceptance_length: float | None
    """Tokens emitted per verification round; for draft training what is expected of them on held-out responses."""
    generation_speedup: float | None
    """Measured speedup of generation over plain decoding."""
    validation_accuracy: float | None
    """Mean reward on held-out prompts."""


class RunPage(Page[RunSummary]):
    """Runs, newest first."""


class RunRead(_RunFields):
    """A run."""

    notes: str
    config: dict[str, Any]
    """The resolved configuration: defaults filled in."""
    config_sha256: str
    max_attempts: int
    gates: list[GateRead]
    """What it has to come to; GET /runs/{id}/gates says what it did."""
    cloned_from_id: UUID | None
    created_by: str | None
    """Name of the user."""
    last_heartbeat_at: datetime | None
    last_checkpoint_step: int | None
    last_checkpoint_path: str | None
    """Its folder, as the cluster's machines see it; for draft training the trained draft."""
    eta_s: float | None
    """Expected time to the last step, from the latest step times; null when unknown or ended."""
    latest: dict[str, float | None]
    """Latest value of every series; null where it was not a finite number."""
    attempts: list[AttemptRead]


class ConfigExample(Schema):
    """A ready configuration."""

    name: str
    title: str
    description: str
    config: dict[str, Any]


class ConfigValidate(Request):
    config: RunConfig = Field(examples=[EXAMPLE_CONFIG])


class ConfigValidated(Schema):
    """A valid configuration."""

    config: dict[str, Any]
    """With all defaults filled in."""
    config_sha256: str
    """Equal for equal configurations, whatever was left to defaults."""
    memory: MemoryEstimate | None
    """Expected memory per GPU or process; null where policy.model does not name a checkpoint's shape."""
