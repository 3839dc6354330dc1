"""What runs measured and said."""

from datetime import datetime

from foredeck.models.base import Answer


class Series(Answer):
    """One metric of one run."""

    name: str
    unit: str
    meaning: str
    num_points: int
    last_step: int | None = None
    last_value: float | None = None


class SeriesColumns(Answer):
    """A series as columns, one entry a bucket."""

    name: str
    step: list[int]
    value: list[float | None]
    min: list[float | None]
    max: list[float | None]


class SeriesData(Answer):
    """Series cut into buckets of equal width."""

    bucket_width: int
    series: list[SeriesColumns]


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
