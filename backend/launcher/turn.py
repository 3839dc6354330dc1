"""Whether it is a waiting run's turn."""

from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from sqlalchemy.orm import Session

from backend.launcher.places import Limit, Owners, Places
from backend.models import Cluster, Run
from backend.runs import repository
from backend.runs.state import LIVE


@dataclass(frozen=True, slots=True)
class Wait:
    """What a run waits for."""

    reason: str
    """As the end of a sentence."""
    num_ahead: int


def why_not_yet(session: Session, run: Run, cluster: Cluster) -> Wait | None:
    """None when the run may begin. Asked under the cluster's lock."""
    places = _places(session, cluster)
    num_live = places.num_taken
    own = Owners(run.created_by_id, run.project_id, run.sweep_id)
    if num_live >= places.num_places:  # as nearly always: those ahead need not be read
        num_ahead = repository.count_ahead(session, run)
    else:
        waiting = repository.list_waiting(session, cluster.id)
        ahead = [Owners(*whose) for _, whose in takewhile(lambda entry: entry[0] != run.id, waiting)]
        num_ahead = len(ahead)
        places.offer(ahead)
    limit = places.kept_back_by(own)
    if limit is None and places.num_taken < places.num_places:
        return None
    queue = f", {num_ahead} ahead in the queue" if num_ahead else ""
    if limit is None:
        return Wait(f"{num_live} of {places.num_places} taken{queue}", num_ahead)
    num = places.limit(limit, own)
    most = f"it carries at most {num} {'run' if num == 1 else 'runs'} of {_named(session, run, limit)} at once"
    return Wait(f"{most}{queue}", num_ahead)


def list_next(session: Session, cluster: Cluster) -> list[UUID]:
    """The waiting runs that there are places for, those first whose turn is first. Asked under the cluster's lock."""
    places, found = _places(session, cluster), []
    if places.num_taken < places.num_places:
        for run_id, whose in repository.list_waiting(session, cluster.id):
            if places.offer([Owners(*whose)]):
                found.append(run_id)
    return found


def _places(session: Session, cluster: Cluster) -> Places:
    """With those that runs hold now."""
    places = Places(
        cluster.max_concurrent_runs,
        cluster.max_concurrent_runs_per_user,
        cluster.max_concurrent_runs_per_project,
        repository.sweep_limits(session, cluster.id),
    )
    for whose, num in repository.count_live(session, cluster.id, LIVE):
        places.take(Owners(*whose), num)
    return places


def _named(session: Session, run: Run, limit: Limit) -> str:
    if limit == "user":
        return f"user {repository.get_user_name(session, run.created_by_id) or 'nobody'}"
    return f"project {run.project.name}" if limit == "project" else "its sweep"
