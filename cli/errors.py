"""How commands end."""

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What `foredeck` exits with; documented in docs/operations/command_line.md."""

    SUCCEEDED = 0
    FAILED = 1
    USAGE = 2
    """The command or what it asked for was wrong: nothing was changed."""
    STOPPED = 3
    TIMEOUT = 4
    INFRASTRUCTURE = 5
    """A service could not be reached or started, or failed inside."""


class CommandError(Exception):
    """Ends the command with a message and an exit code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE, problem: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.problem = problem
        """The service's problem document, where there is one."""
