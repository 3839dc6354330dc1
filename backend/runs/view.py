"""Runs as the API shows them."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import yaml
from sqlalchemy.orm import Session

from backend.models import Run
from backend.runs import repository
from backend.runs.schemas import AttemptRead, RunPage, RunRead, RunSummary
from backend.runs.state import ENDED, LIVE
from backend.runs.stored import current
from backend.telemetry import repository as telemetry

SUMMARY_METRICS = {
    "reward": "reward/train_mean",
    "acceptance_length": "rollout/acceptance_length_tokens",
    "generation_speedup": "speedup/generation_ratio",
    "validation_accuracy": "validation/accuracy_fraction",
}
DRAFT_SUMMARY_METRICS = {"acceptance_length": "draft_pretraining/held_out_acceptance_length_tokens"}
"""Of draft training, which has none of the others."""


def detail(session: Session, run: Run) -> RunRead:
    session.flush()
    session.refresh(run)
    latest = _latest(session, [run.id], None)[run.id]
    return RunRead(
        **_common(run, repository.list_queue_positions(session, [run])),
        config=ordered(run.config),
        created_by=repository.get_user_name(session, run.created_by_id),
        eta_s=_eta(session, run),
        latest=latest,
        attempts=[AttemptRead.model_validate(attempt) for attempt in run.attempts],
    )


def page(session: Session, runs: Sequence[Run], next_cursor: str | None) -> RunPage:
    return RunPage(items=summaries(session, runs), next_cursor=next_cursor)


def summaries(session: Session, runs: Sequence[Run]) -> list[RunSummary]:
    names = [*SUMMARY_METRICS.values(), *DRAFT_SUMMARY_METRICS.values()]
    latest = _latest(session, [run.id for run in runs], names)
    positions = repository.list_queue_positions(session, runs)
    return [_summary(_common(run, positions), latest[run.id]) for run in runs]


def _summary(common: dict[str, Any], latest: Mapping[str, float | None]) -> RunSummary:
    metrics = SUMMARY_METRICS if common["job"] == "grpo" else DRAFT_SUMMARY_METRICS
    values = {field: latest.get(metrics.get(field, "")) for field in SUMMARY_METRICS}
    return RunSummary(**{key: value for key, value in common.items() if key in RunSummary.model_fields}, **values)


def _common(run: Run, positions: Mapping[UUID, int]) -> dict[str, Any]:
    values = repository.as_values(run)
    job = values.pop("config").get("job", "grpo")
    return values | {
        "job": job,
        "project": run.project.name,
        "cluster": run.cluster.name,
        "is_ended": run.status in ENDED,
        "queue_position": positions.get(run.id),
    }


def _latest(
    session: Session, run_ids: Sequence[UUID], names: Collection[str] | None
) -> dict[UUID, dict[str, float | None]]:
    found: dict[UUID, dict[str, float | None]] = {run_id: {} for run_id in run_ids}
    for run_id, name, value in telemetry.latest_values(session, run_ids, names):
        found[run_id][name] = _finite(value)
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _eta(session: Session, run: Run) -> float | None:
    """Steps that are left times the mean of the latest step times."""
    times = repository.get_step_times(session, run.id) if run.status in LIVE else None
    if times is None or not math.isfinite(times[1]):
        return None
    last_step, mean_s = times
    return max(0, run.num_steps - last_step) * mean_s


def ordered(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration in the schema's order, which the database does not keep; one that an older version accepted and
    this one does not is shown as it was stored."""
    resolved = current(config)
    return config if resolved is None else resolved.model_dump(mode="json")


def config_yaml(run: Run) -> str:
    """A file that `foredeck launch` takes."""
    document = {"name": run.name, "title": run.name, "description": run.notes, "config": ordered(run.config)}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
