"""What a launch may ask for: reward functions that its cluster allows, a priority, and room in the queue."""

from collections.abc import Sequence
from http import HTTPStatus

from sqlalchemy.orm import Session

from backend.auth.identity import Principal
from backend.errors import ApiError, ProblemError
from backend.models import Project
from backend.runs import repository
from backend.secret_values import REDACTED, places_of_secrets
from backend.settings import Settings
from contract.config import RunConfig
from contract.config.reward import PythonReward
from contract.config.task import DatasetTask

MAX_OPEN_PRIORITY = 50
"""Higher ones are for the project's administrators."""
RETRY_AFTER_S = 60


def reward_problems(config: RunConfig, cluster: str, allowed: Sequence[str], pointer: str) -> list[ProblemError]:
    """A reward function of a module that the cluster does not allow; its worker would refuse it, too."""
    reward = config.task.reward if isinstance(config.task, DatasetTask) else None
    if not isinstance(reward, PythonReward):
        return []
    module = reward.function.partition(":")[0]
    if any(module == name or module.startswith(f"{name}.") for name in allowed):
        return []
    detail = (
        f"cluster {cluster} allows reward functions of these modules: {', '.join(allowed) or 'none'}. "
        f"Let an administrator add {module} to its reward_modules"
    )
    return [ProblemError(pointer=f"{pointer}/task/reward/function", detail=detail, value=reward.function)]


def secret_problems(config: RunConfig, pointer: str) -> list[ProblemError]:
    """A configuration is shown to all who may see the run, and stored with it."""
    detail = "holds what looks like a secret: put that into the environment of the cluster's machines, and leave it out"
    places = places_of_secrets(config.model_dump(mode="json"), pointer)
    return [ProblemError(pointer=place, detail=detail, value=REDACTED) for place in places]


def check_priority(principal: Principal, project: Project, priority: int) -> None:
    """Raises ApiError (403) where it is beyond what the caller may give."""
    if priority > MAX_OPEN_PRIORITY and not principal.allows_in(project.id, "admin"):
        detail = f"priority {priority}: above {MAX_OPEN_PRIORITY} needs the role admin in project {project.name}."
        error = ProblemError(pointer="/priority", detail=f"must be at most {MAX_OPEN_PRIORITY}", value=priority)
        raise ApiError(HTTPStatus.FORBIDDEN, detail, errors=[error])


def check_room(session: Session, settings: Settings, principal: Principal, project: Project, num_new: int) -> None:
    """Raises ApiError (429) where so many more would be more than may wait. Of two who count, the second waits."""
    repository.lock_launchers(session, principal.user_id, project.id)
    num_of_user, num_of_project = repository.count_queued(session, principal.user_id, project.id)
    limits = (
        (num_of_user, settings.max_queued_runs_per_user, "of yours"),
        (num_of_project, settings.max_queued_runs_per_project, f"of project {project.name}"),
    )
    for num, limit, whose in limits:
        if num + num_new > limit:
            detail = f"{num} runs {whose} wait already, and at most {limit} may: stop some, or try again later."
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            raise ApiError(HTTPStatus.TOO_MANY_REQUESTS, detail, headers=headers)
