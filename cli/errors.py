"""How commands end."""

from enum import IntEnum

from foredeck import ForedeckError, Problem


class ExitCode(IntEnum):
    """What `foredeck` exits with; documented in docs/operations/command_line.md."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    """The command or what it asked for was wrong: nothing was changed."""
    STOPPED = 3
    TIMEOUT = 4
    INFRASTRUCTURE = 5
    """A service could not be reached or started, or failed inside; or a run ended without its worker having its say."""
    GATE_FAILED = 6


class CommandError(Exception):
    """Ends the command with a message and an exit code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.problem = problem
        """The service's problem document, where there is one."""


def as_command_error(error: ForedeckError) -> CommandError:
    """What a service's refusal means for the command."""
    code = ExitCode.INFRASTRUCTURE if error.is_infrastructure else ExitCode.USAGE
    return CommandError(str(error), code, error.problem)
