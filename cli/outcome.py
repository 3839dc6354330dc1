"""What a run's end means for the command that waited for it."""

from cli.errors import CommandError, ExitCode
from foredeck import Foredeck, ForedeckError
from foredeck.models import Run

_CODES = {"succeeded": ExitCode.SUCCEEDED, "failed": ExitCode.FAILED, "stopped": ExitCode.STOPPED}


def exit_code(run: Run) -> ExitCode:
    """Of an ended run. That of a worker which died without a word is the machine's, not the code's."""
    if run.status == "failed" and run.attempts and run.attempts[-1].outcome == "crashed":
        return ExitCode.INFRASTRUCTURE
    if run.status == "succeeded" and run.gates_verdict == "failed":
        return ExitCode.GATE_FAILED
    return _CODES.get(run.status, ExitCode.INFRASTRUCTURE)


def time_is_up(service: Foredeck, run: Run, timeout_s: float) -> CommandError:
    """What to say when the run goes on after so long: whether it is slow, or nobody can tell what it does."""
    words = f"{run.name} has not ended within {timeout_s:.0f} s. It goes on: `foredeck show {run.id}`."
    if run.status == "lost":
        return CommandError(f"{words} {run.status_reason}", ExitCode.INFRASTRUCTURE)
    if run.status == "dispatching" and (silence := _silence(service, run.cluster)):
        return CommandError(f"{words} Its cluster {run.cluster} does not answer: {silence}", ExitCode.INFRASTRUCTURE)
    return CommandError(words, ExitCode.TIMEOUT)


def _silence(service: Foredeck, name: str) -> str | None:
    """Why a cluster does not answer; None where it does, or where nobody knows."""
    try:
        found = [cluster.reachability for cluster in service.clusters.list() if cluster.name == name]
    except ForedeckError:
        return None
    return found[0].detail if found and found[0] and found[0].state == "unreachable" else None
