"""What the telemetry routes answer."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from contract.telemetry.events import Sample
from contract.telemetry.metrics import Axis

LogLevel = Literal["debug", "info", "warning", "error"]


class _Read(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class SeriesRead(_Read):
    """One metric of one run."""

    name: str
    """Its name in the catalogue of metrics."""
    unit: str
    meaning: str
    axis: Axis
    """What its step counts."""
    num_points: int
    """Values received, those of replaced attempts counted too."""
    num_non_finite: int
    """Values received as NaN or infinite."""
    last_step: int | None
    last_value: float | None
    """Value at the last step; null when it is not finite."""


class SeriesColumns(_Read):
    """One series as columns of equal length, one entry per bucket, ascending in step."""

    name: str
    step: list[int]
    """First step of the bucket; always a multiple of bucket_width."""
    value: list[float | None]
    """Mean of the bucket's finite values; null when it has none."""
    min: list[float | None]
    max: list[float | None]
    attempt: list[int]
    """Newest attempt in the bucket."""
    num_non_finite: int
    """NaN and infinite values among those answered."""


class SeriesData(_Read):
    """Series cut into buckets of equal width, which stay where they are as points are appended."""

    bucket_width: int
    """Steps per bucket: the smallest power of two that keeps every series within max_points buckets."""
    series: list[SeriesColumns]


class SampleRead(Sample):
    """A stored rollout."""

    id: int
    attempt: int
    step: int


class SamplesRead(_Read):
    """Rollouts of one step, and the steps that have some."""

    steps: list[int]
    step: int | None
    """The step answered: the one asked for, or else the last; null when there are none."""
    items: list[SampleRead]


class AlarmRead(_Read):
    """Something that was wrong with the run, from when to when."""

    name: str
    title: str
    meaning: str
    """What it says about the run."""
    what_to_do: str
    is_active: bool
    attempt: int
    """The attempt that raised it."""
    step: int
    """The step it was raised at."""
    time: datetime
    message: str
    """What was measured."""
    ending: Literal["cleared", "undone"] | None
    """cleared: the cause has gone. undone: a new attempt went on from a step before it. Null while it is active."""
    ended_step: int | None
    """The step it was cleared at, or that the new attempt went on from."""
    ended_at: datetime | None


class AlarmsRead(_Read):
    """A run's alarms."""

    num_active: int
    items: list[AlarmRead]
    """The active ones first, then the newest."""


class LogQuery(_Read):
    """Which lines of a log."""

    model_config = ConfigDict(extra="forbid")

    after: int | None = Field(None, ge=0, lt=2**63)
    """The first lines that follow this one."""
    before: int | None = Field(None, ge=0, lt=2**63)
    """Lines before this one."""
    limit: int = Field(500, ge=1, le=2000)
    level: LogLevel | None = None
    """Lines of at least this severity."""
    search: str | None = Field(None, max_length=200)
    """Text in the message, in any case."""


class LogLineRead(_Read):
    """One line of a run's log."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    attempt: int
    emitter: str
    time: datetime
    level: LogLevel
    message: str


class LogPage(_Read):
    """Lines in ascending order."""

    items: list[LogLineRead]
    last_id: int | None
    """Id of the last line answered: where following goes on. Null when there is none."""
