"""What follows from a run's silence and from what Ray says about its job. Pure rules: no clock, no database, no Ray."""

from dataclasses import dataclass
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
    AWAIT = auto()
    """The job has just been seen to have ended well: its last word may be on its way."""
    END_JOB = auto()
    """The worker has said its last word, but its job goes on and is silent."""
    BURY = auto()
    """The job is over and the run is not: a new attempt, or the end."""
    RESUME = auto()
    """The job went down with this machine's own Ray: a new attempt, whatever came before."""


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
    has_last_word: bool
    """The attempt's outcome is known, and the run goes on."""
    ended_s: float | None
    """Since the job was first seen to have ended without a last word."""
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
            return _succeeded(look)
        case JobState.GONE:
            return Verdict(Action.RESUME, "Ray was shut down on this machine.")
        case JobState.FAILED | JobState.STOPPED | JobState.MISSING:
            return Verdict(Action.BURY, _why_dead(look.job))


def _unanswered(look: Look) -> Verdict:
    if look.status is Status.DISPATCHING or not look.is_silent:
        return Verdict(Action.KEEP)
    reason = f"Worker lost {look.silent_s:.0f} s ago. Asking Ray: {look.problem}."
    return Verdict(Action.KEEP if look.status is Status.LOST else Action.LOSE, reason)


def _going(look: Look, job: Job) -> Verdict:
    if look.has_last_word:
        return Verdict(Action.END_JOB if look.is_silent else Action.KEEP)
    if not look.is_silent:
        return Verdict(Action.FOUND, "Worker is back.") if look.status is Status.LOST else Verdict(Action.KEEP)
    if look.status is Status.RUNNING:
        return Verdict(Action.LOSE, f"Worker lost {look.silent_s:.0f} s ago. Asking Ray.")
    if look.status is Status.LOST:
        return Verdict(Action.KEEP, f"No word from the worker for {look.silent_s:.0f} s. Ray says that its job runs.")
    if job.state is JobState.PENDING:
        return Verdict(
            Action.KEEP, f"The attempt began {look.silent_s:.0f} s ago. Ray has its job, and has not started it yet."
        )
    return Verdict(
        Action.KEEP, f"The Ray job runs, but its worker has not reached {look.api_url} for {look.silent_s:.0f} s."
    )


def _succeeded(look: Look) -> Verdict:
    if look.has_last_word:
        return Verdict(Action.BURY, "The Ray job has ended.")
    if look.ended_s is None or look.ended_s <= look.finish_grace_s:
        return Verdict(Action.AWAIT, "The Ray job has ended well. Waiting for its last events.")
    return Verdict(Action.BURY, f"The Ray job ended well {look.ended_s:.0f} s ago, but its last events never came.")


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
