"""What the launcher asks of a cluster's job server. Everything above knows this page only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class JobState(StrEnum):
    """Ray's states of a job, one for a job it does not know, and one for a job whose Ray is gone."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    MISSING = "MISSING"
    GONE = "GONE"
    """This machine's own Ray was shut down, and its jobs with it."""


GOING = frozenset({JobState.PENDING, JobState.RUNNING})


@dataclass(frozen=True, slots=True)
class Job:
    """What the job server says about a job."""

    state: JobState
    message: str = ""
    """One line."""
    exit_code: int | None = None
    """Of the entry command, when it has one."""
    details: tuple[str, ...] = ()
    """The end of a longer message, for a job that has no log: what should have run in it was never set up."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to start."""

    submission_id: str
    entrypoint: str
    """Shell command; made of the cluster's settings only, never of anything a user wrote into a run."""
    environment: dict[str, str]
    """JSON, or text without a single quote."""
    metadata: dict[str, str]
    runtime_env: dict[str, Any] = field(default_factory=dict)
    """How our code comes to the cluster; of the cluster's registration, too."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster."""

    gpus: float
    free_gpus: float


class UnreachableError(Exception):
    """The job server gave no usable answer. Nothing follows from that about any job."""


class SilentError(UnreachableError):
    """It gave no answer at all: asking it about something else will go no better."""


class NotStartedError(UnreachableError):
    """This machine's own Ray does not run."""


class StartingError(UnreachableError):
    """This machine's own Ray has been asked for and will come."""


class RefusedError(Exception):
    """The job server will never take this job; trying again is useless."""


class JobServer(Protocol):
    """A cluster's job server. Every method raises UnreachableError; all can be repeated safely."""

    def submit(self, submission: Submission) -> None:
        """Starts the job; does nothing when a job of this id exists. Raises RefusedError."""

    def get(self, submission_id: str) -> Job: ...

    def stop(self, submission_id: str) -> None:
        """Asks the job to end (SIGTERM, a little later SIGKILL); does nothing when it is over or unknown."""

    def log_tail(self, submission_id: str, num_lines: int) -> list[str]: ...

    def version(self) -> str:
        """Ray's version."""

    def resources(self) -> dict[str, tuple[float, float]]:
        """(used, total) by Ray's name of the resource."""

    def nodes(self) -> Sequence[Node] | None:
        """The machines there are; None where they are not known, or where the cluster adds some when they are
        needed."""
