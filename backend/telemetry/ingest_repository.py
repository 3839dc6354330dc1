"""SQL of ingest: marks, points and samples, each in a statement a batch."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select, text, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.models import Alarm, Attempt, EmitterMark
from contract.telemetry import events
from contract.telemetry.events import Sample

Measurement = tuple[str, int, float, datetime]
"""Series name, step, value and time."""

_UPSERT_SERIES = text("""
INSERT INTO series (run_id, name, num_points, num_non_finite, last_attempt, last_step, last_value)
SELECT :run_id, name, num_points, num_non_finite, :attempt, step, value
FROM unnest(CAST(:names AS text[]), CAST(:num_points AS bigint[]), CAST(:num_non_finite AS bigint[]),
            CAST(:steps AS integer[]), CAST(:values AS float8[])) AS t(name, num_points, num_non_finite, step, value)
ON CONFLICT (run_id, name) DO UPDATE SET
  num_points = series.num_points + excluded.num_points,
  num_non_finite = series.num_non_finite + excluded.num_non_finite,
  (last_attempt, last_step, last_value) = (
    SELECT attempt, step, value FROM (VALUES
      (series.last_attempt, series.last_step, series.last_value, 1),
      (excluded.last_attempt, excluded.last_step, excluded.last_value, 2)
    ) AS candidate(attempt, step, value, age)
    ORDER BY attempt DESC NULLS LAST, step DESC, age DESC LIMIT 1)
RETURNING name, id
""")

# The same emitter may measure a metric again at the same step: the later event counts.
_INSERT_POINTS = text("""
INSERT INTO point (series_id, step, attempt, emitter, value, time)
SELECT series_id, step, :attempt, :emitter, value, time
FROM unnest(CAST(:series_ids AS bigint[]), CAST(:steps AS integer[]), CAST(:values AS float8[]),
            CAST(:times AS timestamptz[])) AS t(series_id, step, value, time)
ON CONFLICT (series_id, step, attempt, emitter) DO UPDATE SET value = excluded.value, time = excluded.time
""")

_INSERT_SAMPLES = text("""
INSERT INTO rollout_sample (run_id, attempt, step, body)
SELECT :run_id, :attempt, step, CAST(body AS jsonb)
FROM unnest(CAST(:steps AS integer[]), CAST(:bodies AS text[])) WITH ORDINALITY AS t(step, body, position)
ORDER BY position
""")


def list_attempts(session: Session, run_id: UUID) -> set[int]:
    return set(session.scalars(select(Attempt.number).where(Attempt.run_id == run_id)))


def lock_marks(session: Session, run_id: UUID, sources: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """The marks of the sources (attempt, emitter), 0 for a new one, locked until the transaction ends.

    The sources must be sorted, so that two batches wait for each other in one direction only.
    """
    rows = [{"run_id": run_id, "attempt": attempt, "emitter": emitter, "seq": 0} for attempt, emitter in sources]
    session.execute(insert(EmitterMark).on_conflict_do_nothing(), rows)
    key = tuple_(EmitterMark.attempt, EmitterMark.emitter)
    statement = (
        select(EmitterMark.attempt, EmitterMark.emitter, EmitterMark.seq)
        .where(EmitterMark.run_id == run_id, key.in_(sources))
        .order_by(EmitterMark.attempt, EmitterMark.emitter)
        .with_for_update()
    )
    return {(attempt, emitter): seq for attempt, emitter, seq in session.execute(statement)}


def advance_marks(session: Session, run_id: UUID, marks: Mapping[tuple[int, str], int]) -> None:
    rows = [
        {"run_id": run_id, "attempt": attempt, "emitter": emitter, "seq": seq}
        for (attempt, emitter), seq in marks.items()
    ]
    if rows:
        statement = insert(EmitterMark)
        session.execute(statement.on_conflict_do_update("pk_emitter_mark", set_={"seq": statement.excluded.seq}), rows)


def insert_points(
    session: Session, run_id: UUID, attempt: int, emitter: str, measurements: Sequence[Measurement]
) -> None:
    """Store the measurements of one emitter; of several of one series and step the last."""
    series_ids = _upsert_series(session, run_id, attempt, measurements)
    points = {(series_ids[name], step): (value, time) for name, step, value, time in measurements}
    parameters = {
        "attempt": attempt,
        "emitter": emitter,
        "series_ids": [series_id for series_id, _ in points],
        "steps": [step for _, step in points],
        "values": [value for value, _ in points.values()],
        "times": [time for _, time in points.values()],
    }
    session.execute(_INSERT_POINTS, parameters)


def _upsert_series(session: Session, run_id: UUID, attempt: int, measurements: Sequence[Measurement]) -> dict[str, int]:
    """Ids by name, after counting the measurements in. In order, so that two batches wait in one direction only."""
    num_points = Counter(name for name, *_ in measurements)
    num_non_finite = Counter(name for name, _, value, _ in measurements if not math.isfinite(value))
    by_step = sorted(measurements, key=lambda measurement: measurement[:2])
    last = {name: (step, value) for name, step, value, _ in by_step}
    parameters = {
        "run_id": run_id,
        "attempt": attempt,
        "names": list(last),
        "num_points": [num_points[name] for name in last],
        "num_non_finite": [num_non_finite[name] for name in last],
        "steps": [step for step, _ in last.values()],
        "values": [value for _, value in last.values()],
    }
    return dict(session.execute(_UPSERT_SERIES, parameters).all())


def insert_samples(session: Session, run_id: UUID, attempt: int, samples: Sequence[tuple[int, Sample]]) -> None:
    """Samples by step, in order."""
    parameters = {
        "run_id": run_id,
        "attempt": attempt,
        "steps": [step for step, _ in samples],
        "bodies": [_jsonb(sample) for _, sample in samples],
    }
    session.execute(_INSERT_SAMPLES, parameters)


def insert_alarms(session: Session, run_id: UUID, attempt: int, words: Sequence[tuple[events.Alarm, datetime]]) -> None:
    """Words about alarms with their times, in order."""
    rows = [
        {
            "run_id": run_id,
            "attempt": attempt,
            "step": body.step,
            "name": body.name.value,
            "is_raised": body.is_raised,
            "message": body.message.replace("\x00", ""),
            "time": time,
        }
        for body, time in words
    ]
    # Returning the ids in the order of the rows keeps them in the order of the events.
    session.scalars(insert(Alarm).returning(Alarm.id, sort_by_parameter_order=True), rows).all()


def _jsonb(sample: Sample) -> str:
    """JSON as Postgres takes it: non-finite numbers are strings, NUL characters are left out."""
    body = sample.model_dump_json()
    return json.dumps(_without_nul(json.loads(body))) if "\\u0000" in body else body


def _without_nul(node: Any) -> Any:
    if isinstance(node, str):
        return node.replace("\x00", "")
    if isinstance(node, list):
        return [_without_nul(item) for item in node]
    return {key: _without_nul(value) for key, value in node.items()} if isinstance(node, dict) else node
