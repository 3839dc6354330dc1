"""Sweeps as the API shows them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from backend.models import Sweep
from backend.runs import repository as runs
from backend.runs.state import ENDED
from backend.runs.view import DRAFT_SUMMARY_METRICS, SUMMARY_METRICS, summaries
from backend.sweeps import repository
from backend.sweeps.schemas import BestBy, SweepBest, SweepPage, SweepRead, SweepSummary


def detail(session: Session, sweep: Sweep) -> SweepRead:
    session.flush()
    counts = repository.count_statuses(session, [sweep.id])[sweep.id]
    members = repository.list_runs(session, sweep.id)
    common = _common(session, sweep, counts)
    return SweepRead(**common, notes=sweep.notes, config=sweep.config, runs=summaries(session, members))


def page(session: Session, sweeps: Sequence[Sweep], next_cursor: str | None, best_by: BestBy) -> SweepPage:
    ids = [sweep.id for sweep in sweeps]
    counts, best = repository.count_statuses(session, ids), _best(session, ids, best_by)
    items = [SweepSummary(**_common(session, sweep, counts[sweep.id]), best=best.get(sweep.id)) for sweep in sweeps]
    return SweepPage(items=items, next_cursor=next_cursor)


def _best(session: Session, sweep_ids: Collection[UUID], by: BestBy) -> dict[UUID, SweepBest]:
    rows = repository.list_best(session, sweep_ids, SUMMARY_METRICS[by], DRAFT_SUMMARY_METRICS.get(by))
    return {
        sweep_id: SweepBest(run_id=run_id, name=name, point=point, metric=by, value=value)
        for sweep_id, (_, run_id, name, point, value) in rows.items()
    }


def _common(session: Session, sweep: Sweep, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": sweep.id,
        "name": sweep.name,
        "labels": sweep.labels,
        "project": sweep.project.name,
        "cluster": sweep.cluster.name,
        "keys": sweep.keys,
        "max_concurrent": sweep.max_concurrent,
        "num_runs": sum(counts.values()),
        "num_runs_by_status": dict(counts),
        "is_ended": set(counts) <= ENDED,
        "created_by": runs.get_user_name(session, sweep.created_by_id),
        "created_at": sweep.created_at,
    }
