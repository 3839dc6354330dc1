"""What a worker reports, and what the control plane answers.

An event is written to the worker's spool first and sent from there until it is acknowledged, so an event is known by
`(run_id, attempt, emitter, seq)`: sent twice, it is stored once.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, field_validator

from contract.config.grpo import MAX_SAMPLES
from contract.telemetry.alarms import AlarmName
from contract.telemetry.metrics import METRICS
from contract.telemetry.stages import Stage

Step = Annotated[int, Field(ge=0, lt=2**31)]


class WireModel(BaseModel):
    """Immutable and closed; non-finite numbers travel as the strings NaN, Infinity and -Infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, ser_json_inf_nan="strings")


class Started(WireModel):
    """The attempt's process runs."""

    kind: Literal["started"] = "started"
    resumed_from_step: Step | None = None
    """Step of the checkpoint that the attempt goes on from; null for a fresh start."""
    host: str
    """Host name of the driver."""
    versions: dict[str, str]
    """Versions of the packages that decide the result."""


class Metrics(WireModel):
    """Numbers measured at one step."""

    kind: Literal["metrics"] = "metrics"
    step: Step
    """The step on each metric's own axis; the first is 1, and 0 is the state before it."""
    values: dict[str, float] = Field(min_length=1)
    """Value by catalogue name. A missing measurement is left out, never sent as 0 or 1."""

    @field_validator("values")
    @classmethod
    def _names_are_declared(cls, values: dict[str, float]) -> dict[str, float]:
        unknown = sorted(values.keys() - METRICS.keys())
        if unknown:
            raise ValueError(f"undeclared metrics {', '.join(unknown)}: declare them in contract/telemetry/metrics.py")
        return values


class Round(WireModel):
    """One verification round of one sequence."""

    drafted: list[int]
    """Token ids proposed by the drafter; empty when the round was not speculated."""
    num_accepted: NonNegativeInt
    """How many of them, from the front, were accepted."""
    emitted: int | None
    """The token after the accepted ones: a correction, or the bonus when all were accepted; null when the response
    ended inside the accepted block."""
    draft_logprobs: list[float]
    """Log-probability of each drafted token under the draft."""
    policy_logprobs: list[float]
    """Log-probability of each drafted token under the policy."""


MAX_ANSWER = 2_000
"""Characters of a sample's answer."""


class Sample(WireModel):
    """One rollout, as text and as verification rounds."""

    prompt: str
    """The prompt's text."""
    answer: str | None = Field(None, max_length=MAX_ANSWER)
    """What the reward compared with, cut where it is long; null where a version before stored none."""
    response: str
    """The response's text."""
    reward: float
    """Its reward."""
    advantage: float
    """Its advantage in the update."""
    is_truncated: bool
    """Cut at max_new_tokens."""
    rounds: list[Round]
    """The rounds that made the response, in order."""
    vocabulary: dict[int, str]
    """Text of each token id in the rounds."""


class Samples(WireModel):
    """Rollouts kept for reading."""

    kind: Literal["samples"] = "samples"
    step: Annotated[Step, Field(ge=1)]
    samples: list[Sample] = Field(min_length=1, max_length=MAX_SAMPLES)


class Checkpoint(WireModel):
    """A checkpoint is complete on disk."""

    kind: Literal["checkpoint"] = "checkpoint"
    step: Step
    path: str
    """Folder, as the cluster's machines see it."""
    size_bytes: NonNegativeInt


class Heartbeat(WireModel):
    """Sent on every change of stage and every few seconds in between."""

    kind: Literal["heartbeat"] = "heartbeat"
    stage: Stage
    step: Step
    """The GRPO step in progress; 0 during set-up."""
    stage_progress_fraction: float | None = Field(None, ge=0, le=1)
    """How far a long stage has come, where it is known."""


class Log(WireModel):
    """One line of the worker's log."""

    kind: Literal["log"] = "log"
    level: Literal["debug", "info", "warning", "error"]
    message: str = Field(max_length=20_000)


class Alarm(WireModel):
    """Something began to be wrong with the run, or is right again."""

    kind: Literal["alarm"] = "alarm"
    step: Step
    name: AlarmName
    is_raised: bool
    """False where the cause has gone."""
    message: str = Field(max_length=2_000)
    """What was measured, with numbers; the catalogue says what it means and what to do."""


class Finished(WireModel):
    """The attempt's last event."""

    kind: Literal["finished"] = "finished"
    outcome: Literal["succeeded", "failed", "stopped"]
    is_retryable: bool = False
    """Whether a new attempt could do better: true for a lost actor, false for a wrong configuration."""
    error: str | None = Field(None, max_length=20_000)
    """What went wrong and how to mend it, in words for the run's owner."""


Body = Annotated[
    Started | Metrics | Samples | Checkpoint | Heartbeat | Log | Alarm | Finished, Field(discriminator="kind")
]


class Event(WireModel):
    """The envelope."""

    schema_version: Literal[1] = 1
    run_id: UUID
    attempt: int = Field(ge=1, lt=2**31)
    """1 for the first attempt."""
    emitter: str = Field(pattern=r"^[a-z_]+/\d+$", max_length=64, examples=["driver/0"])
    """Role and rank of the process that reports."""
    seq: int = Field(ge=1, lt=2**63)
    """Counts the emitter's events from 1 without gaps."""
    time: AwareDatetime
    """When it happened, by the worker's clock."""
    body: Body


MAX_EVENTS_PER_BATCH = 500
MAX_BATCH_BYTES = 32 * 2**20
"""Longest body that is accepted. A sender closes a batch well before; one event alone must fit."""


class IngestRequest(WireModel):
    """Events of one run in the order of their seq; attempts and emitters may be mixed."""

    events: list[Event] = Field(min_length=1, max_length=MAX_EVENTS_PER_BATCH)


class AnswerModel(WireModel):
    """Open, unlike what a worker sends: a control plane of a later version may tell more."""

    model_config = ConfigDict(extra="ignore")


class Acknowledgement(AnswerModel):
    """Everything of this emitter up to and including `seq` is durable and need not be sent again."""

    attempt: PositiveInt
    emitter: str
    seq: NonNegativeInt


class IngestResponse(AnswerModel):
    """The answer to a batch, which also tells the worker whether it should go on."""

    acknowledged: list[Acknowledgement]
    current_attempt: PositiveInt
    """A worker of an earlier attempt has been replaced and must exit."""
    is_stop_requested: bool
    """The run's owner wants it to stop: finish the stage, report `stopped` and exit."""


class WorkerToken(AnswerModel):
    """What a starter is exchanged for. Errors show nothing of it, and it stays in memory."""

    model_config = ConfigDict(hide_input_in_errors=True)

    token: str = Field(repr=False)
    """Bearer token that may only report to its run, of its attempt and those before."""


class WorkerAssignment(WireModel):
    """What the control plane hands to a worker when it dispatches an attempt. Errors show nothing of it: it holds a
    token."""

    model_config = ConfigDict(hide_input_in_errors=True)

    run_id: UUID
    run_name: str
    attempt: PositiveInt
    api_url: str
    """Base URL of the control plane, as the cluster's machines see it."""
    starter: str = Field(repr=False)
    """Bearer token that does nothing but be exchanged for a WorkerToken, until one is used: Ray shows it."""
    storage_dir: str
    """Folder for this run's spool and checkpoints, on storage that outlives the process."""
    cache_dir: str
    """Folder shared by runs, for warmed-up policies and pretrained draft heads."""
    config_json: str
    """The resolved RunConfig."""
    config_sha256: str
    """Its digest, which the worker checks."""
    reward_modules: list[str] = []
    """Python modules that the cluster's registration allows reward functions from; each allows what lies below it."""


ASSIGNMENT_VARIABLE = "FOREDECK_ASSIGNMENT"
"""Environment variable that carries a WorkerAssignment as JSON."""
