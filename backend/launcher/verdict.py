"""What follows from a run's silence and from what Ray says about its job. Pure rules: no clock, no database, no Ray."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from backend.launcher.jobs import Job, JobState
from backend.runs.state import Status


class Action(Enum):
    KEEP = auto()
    """Stay in the status; say the reason if there is one."""
    FOUND = auto()
    """A lost run reports again."""
    LOSE = auto()
    """Nobody knows what became of it."""
    BURY = auto()
    """The job is over without a last word: a new attempt, or the end."""
    FAIL = auto()
    """The job is over and a new attempt would not help."""


@dataclass(frozen=True, slots=True)
class Verdict:
    action: Action
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known about a live run at one moment."""

    status: Status
    silent_s: float
    """Since the last word of the current attempt's worker, or since the attempt began."""
    job: Job | None
    """None when the cluster did not answer."""
    problem: str
    """Why it did not."""
    now: datetime
    heartbeat_timeout_s: float
    finish_grace_s: float
    api_url: str

    @property
    def is_silent(self) -> bool:
        return self.silent_s > self.heartbeat_timeout_s


def judge(look: Look) -> Verdict:
    """No single failed call to Ray ever ends a run; only Ray's own word that the job is over does."""
    if look.job is None:
        return _unanswered(look)
    match look.job.state:
        case JobState.PENDING | JobState.RUNNING:
            return _going(look, look.job)
        case JobState.SUCCEEDED:
            return _succeeded(look, look.job)
        case JobState.FAILED | JobState.STOPPED | JobState.MISSING:
            return Verdict(Action.BURY, _why_dead(look.job))


def _unanswered(look: Look) -> Verdict:
    if look.status is Status.DISPATCHING or not look.is_silent:
        return Verdict(Action.KEEP)
    reason = f"Worker lost {look.silent_s:.0f} s ago. Asking Ray: {look.problem}."
    return Verdict(Action.KEEP if look.status is Status.LOST else Action.LOSE, reason)


def _going(look: Look, job: Job) -> Verdict:
    if not look.is_silent:
        return Verdict(Action.FOUND, "Worker is back.") if look.status is Status.LOST else Verdict(Action.KEEP)
    if look.status is Status.RUNNING:
        return Verdict(Action.LOSE, f"Worker lost {look.silent_s:.0f} s ago. Asking Ray.")
    if look.status is Status.LOST:
        return Verdict(Action.KEEP, f"No word from the worker for {look.silent_s:.0f} s. Ray says that its job runs.")
    if job.state is JobState.PENDING:
        return Verdict(Action.KEEP, f"Ray has had the job for {look.silent_s:.0f} s and has not started it yet.")
    return Verdict(
        Action.KEEP, f"The Ray job runs, but its worker has not reached {look.api_url} for {look.silent_s:.0f} s."
    )


def _succeeded(look: Look, job: Job) -> Verdict:
    ended_s = look.silent_s if job.ended_at is None else (look.now - job.ended_at).total_seconds()
    if ended_s <= look.finish_grace_s:
        return Verdict(Action.KEEP, "The Ray job has ended well. Waiting for its last events.")
    return Verdict(Action.FAIL, f"The Ray job ended well {ended_s:.0f} s ago, but its last events never came.")


def _why_dead(job: Job) -> str:
    if job.state is JobState.MISSING:
        return "Ray does not know the job any more: it was restarted."
    if job.state is JobState.STOPPED:
        return "The Ray job was stopped from outside."
    if job.exit_code is not None and job.exit_code < 0:
        return f"The worker's process was killed (signal {-job.exit_code})."
    if job.exit_code is not None:
        return f"The worker's process ended with exit code {job.exit_code}."
    return f"The Ray job failed: {job.message.rstrip('.') or 'no reason given'}."
