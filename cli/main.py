"""The `foredeck` command."""

import os
import sys

import typer

from cli import access, clusters, drafts, export, launching, machine, projects, runs, sweeps, users
from cli.errors import CommandError, ExitCode, as_command_error
from cli.output import print_error
from foredeck import ForedeckError


def _end(result: int | None) -> None:
    raise typer.Exit(int(result or 0))


app = typer.Typer(
    name="foredeck",
    help="Control plane for RL post-training with lossless speculative rollouts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=_end,
)
launching.register(app)
runs.register(app)
export.register(app)
machine.register(app)
access.register(app)
users.register(app)
projects.register(app)
drafts.register(app)
clusters.register(app)
sweeps.register(app)


def main() -> None:
    """Runs the command and ends with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code; errors are printed, as JSON when --json is among the arguments."""
    try:
        app(arguments, prog_name="foredeck")
    except SystemExit as end:
        return int(end.code or 0)
    except (CommandError, ForedeckError) as error:
        ending = error if isinstance(error, CommandError) else as_command_error(error)
        print_error(ending, "--json" in arguments)
        return ending.code
    except BrokenPipeError:  # `foredeck logs RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.SUCCEEDED


if __name__ == "__main__":
    main()
