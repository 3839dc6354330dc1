"""What webhooks are told of a run."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from backend.models import Run
from backend.telemetry.alarms import Episode, changes
from backend.webhooks.events import EventType
from backend.webhooks.outbox import emit


def tell(session: Session, run: Run, event_type: EventType, **more: Any) -> None:
    """Promises the event, with what people ask for first and the address of the run's page."""
    data = {
        "run_id": run.id,
        "run_name": run.name,
        "project": run.project.name,
        "labels": run.labels,
        "cluster": run.cluster.name,
        "status": str(run.status),
        "status_reason": run.status_reason,
        "attempt": run.current_attempt,
        "step": run.step,
        "num_steps": run.num_steps,
        "url": f"{session.info.get('public_url', '')}/runs/{run.id}",
    }
    emit(session, run.project_id, event_type, data | more)


def tell_of_alarms(session: Session, run: Run, before: Sequence[Episode], after: Sequence[Episode]) -> None:
    """Promises what of the run's alarms has changed."""
    for event_type, episode in changes(before, after):
        alarm = {
            "name": episode.name,
            "message": episode.message,
            "attempt": episode.attempt,
            "step": episode.step,
            "time": episode.time,
            "ending": episode.ending if event_type == "alarm.cleared" else None,
        }
        tell(session, run, event_type, alarm=alarm)
