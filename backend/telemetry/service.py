"""What can be asked about a run's telemetry."""

import json
import math
from collections.abc import Iterator, Sequence
from uuid import UUID

from sqlalchemy.orm import Session

from backend.auth.identity import Principal
from backend.db import Database
from backend.errors import ProblemError, invalid, not_found
from backend.runs import repository as runs
from backend.telemetry import repository
from backend.telemetry.alarms import Episode, episodes
from backend.telemetry.ingest import ingest
from backend.telemetry.parquet import write_rounds
from backend.telemetry.schemas import AlarmRead, AlarmsRead, LogLineRead, LogPage, LogQuery, SampleRead, SeriesRead
from contract.telemetry.alarms import ALARMS
from contract.telemetry.metrics import METRICS

__all__ = [
    "alarms",
    "check_names",
    "ingest",
    "list_series",
    "logs",
    "require_runs",
    "sample_pages",
    "samples",
    "samples_parquet",
    "series_data",
    "trim",
]

NOTICE_LIFETIME_S = 3600.0
"""A stream that was cut off for longer is told to load everything anew."""
_ALARM_KINDS = {name.value: kind for name, kind in ALARMS.items()}
"""By stored name, of which an earlier version may have had more."""
_SAMPLES_PER_PAGE = 64
"""Of a file's row group: some megabytes at most, in memory one after the other."""
_EMPTY = ("[]", "[]", "[]", "[]", "[]", 0)


def require_run(session: Session, run_id: UUID) -> None:
    """Raises ApiError 404 for an unknown run."""
    if runs.get_status(session, run_id) is None:
        raise not_found("run", run_id)


def require_runs(session: Session, text: str, reader: Principal) -> frozenset[UUID] | None:
    """The runs named by `all` (None) or by ids separated by commas. Raises ApiError 422, or 404 for one that the reader
    may not see."""
    if text == "all":
        return None
    run_ids = frozenset(_uuid(part.strip()) for part in text.split(","))
    unknown = run_ids - repository.list_existing(session, run_ids, reader.projects("read"))
    if unknown:
        raise not_found("run", min(unknown))
    return run_ids


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        detail = "must be `all` or ids of runs, separated by commas"
        raise invalid([ProblemError(parameter="runs", detail=detail, value=text[:200])]) from None


def list_series(session: Session, run_id: UUID) -> list[SeriesRead]:
    """The run's series in the order of the catalogue. Raises ApiError 404."""
    require_run(session, run_id)
    by_name = {series.name: series for series in repository.list_series(session, run_id)}
    return [
        SeriesRead(
            name=name,
            unit=metric.unit,
            meaning=metric.meaning,
            axis=metric.axis,
            num_points=by_name[name].num_points,
            num_non_finite=by_name[name].num_non_finite,
            last_step=by_name[name].last_step,
            last_value=_finite(by_name[name].last_value),
        )
        for name, metric in METRICS.items()
        if name in by_name
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def series_data(session: Session, run_id: UUID, names: Sequence[str], from_step: int, max_points: int) -> str:
    """JSON of `SeriesData`, put together from what Postgres wrote. Raises ApiError: 404, 422 for undeclared names."""
    require_run(session, run_id)
    names = list(dict.fromkeys(names))
    check_names(names)
    found = repository.list_series(session, run_id, names)
    last_step = repository.last_step(session, [series.id for series in found])
    width = bucket_width(0 if last_step is None else last_step, max_points)
    buckets = repository.list_buckets(session, found, width, from_step // width * width)
    columns = {
        series_id: (step, value, low, high, attempt, num_non_finite)
        for series_id, step, value, low, high, attempt, num_non_finite in buckets
    }
    ids = {series.name: series.id for series in found}
    texts = ",".join(_columns_json(name, columns.get(ids.get(name, 0), _EMPTY)) for name in names)
    return f'{{"bucket_width":{width},"series":[{texts}]}}'


def bucket_width(last_step: int, max_points: int) -> int:
    """The smallest power of two with at most max_points buckets from step 0 to last_step."""
    width = 1
    while last_step // width + 1 > max_points:
        width *= 2
    return width


def _columns_json(name: str, columns: tuple[str, str, str, str, str, int]) -> str:
    step, value, low, high, attempt, num_non_finite = columns
    return (
        f'{{"name":{json.dumps(name)},"step":{step},"value":{value},"min":{low},"max":{high},'
        f'"attempt":{attempt},"num_non_finite":{num_non_finite}}}'
    )


def check_names(names: Sequence[str]) -> None:
    """Raises ApiError (422) for names that no metric has."""
    detail = "there is no metric of this name; GET /runs/{id}/series lists those of the run"
    unknown = [
        ProblemError(parameter="names", detail=detail, value=name[:200]) for name in names if name not in METRICS
    ]
    if unknown:
        raise invalid(unknown)


def samples(session: Session, run_id: UUID, step: int | None, limit: int) -> str:
    """JSON of `SamplesRead`. Raises ApiError 404."""
    require_run(session, run_id)
    steps = repository.list_sample_steps(session, run_id)
    if step is None and steps:
        step = steps[-1]
    items = [] if step is None else repository.list_samples(session, run_id, step, limit)
    return f'{{"steps":{json.dumps(steps)},"step":{json.dumps(step)},"items":[{",".join(items)}]}}'


def samples_parquet(database: Database, run_id: UUID) -> Iterator[bytes]:
    """Parts of a Parquet file of all stored rollouts; see backend.telemetry.parquet. Raises ApiError 404 at once.

    Each page is a transaction of its own: whoever fetches slowly holds none open.
    """
    with database.transaction() as session:
        require_run(session, run_id)
    return write_rounds(run_id, sample_pages(database, run_id))


def sample_pages(database: Database, run_id: UUID) -> Iterator[list[SampleRead]]:
    """All stored rollouts, each step's newest attempt's."""
    after = (-1, 0)
    while True:
        with database.transaction() as session:
            found = repository.list_samples_after(session, run_id, after, _SAMPLES_PER_PAGE)
        if not found:
            return
        yield [SampleRead.model_validate_json(body) for body, _, _ in found]
        after = (found[-1].step, found[-1].id)


def alarms(session: Session, run_id: UUID) -> AlarmsRead:
    """The run's alarms in the words of the catalogue. Raises ApiError 404."""
    require_run(session, run_id)
    told = episodes(repository.list_alarm_words(session, run_id), repository.list_later_attempts(session, run_id))
    items = [_alarm(episode) for episode in sorted(told, key=lambda one: (one.is_active, one.time), reverse=True)]
    return AlarmsRead(num_active=sum(item.is_active for item in items), items=items)


def _alarm(episode: Episode) -> AlarmRead:
    kind = _ALARM_KINDS.get(episode.name)
    return AlarmRead(
        name=episode.name,
        title=kind.title if kind else episode.name.replace("_", " ").capitalize(),
        meaning=kind.meaning if kind else "",
        what_to_do=kind.what_to_do if kind else "",
        is_active=episode.is_active,
        attempt=episode.attempt,
        step=episode.step,
        time=episode.time,
        message=episode.message,
        ending=episode.ending,
        ended_step=episode.ended_step,
        ended_at=episode.ended_at,
    )


def logs(session: Session, run_id: UUID, query: LogQuery) -> LogPage:
    """A page of the run's log. Raises ApiError 404."""
    require_run(session, run_id)
    items = [LogLineRead.model_validate(line) for line in repository.list_log_lines(session, run_id, query)]
    return LogPage(items=items, last_id=items[-1].id if items else None)


def trim(session: Session, max_age_s: float = NOTICE_LIFETIME_S) -> int:
    """Delete old notices; how many. Called at an interval."""
    return repository.delete_notices(session, max_age_s)
