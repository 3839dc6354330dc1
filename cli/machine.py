"""Commands that run everything on this machine; they need the `server` and `embedded` extras."""

# ruff: noqa: PLC0415  what these commands need is not in the base install, and takes time to import

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode

DEMO_FILE = Path(__file__).resolve().parent.parent / "examples" / "arithmetic-eagle3.yaml"
PORT_HELP = "First of five ports; FOREDECK_PORT, or 8600, unless given."
Port = Annotated[int | None, typer.Option("--port", metavar="BASE", help=PORT_HELP)]


def register(app: typer.Typer) -> None:
    for command in (up, status, down, demo):
        app.command(command.__name__)(command)


def up(
    *,
    port: Port = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it is up; `foredeck down` ends it.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table and no link.")] = False,
) -> None:
    """Start everything on this machine and keep it running until Ctrl-C."""
    with _extras():
        from cli import local

        if detach:
            local.up_detached(port, quiet)
        else:
            local.up(port, quiet)


def status(*, is_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """Show what runs on this machine, where, and how much memory it takes."""
    with _extras():
        from cli import local

        is_up = local.show_status(is_json)
    return ExitCode.SUCCEEDED if is_up else ExitCode.STOPPED


def down() -> None:
    """End everything that runs on this machine."""
    with _extras():
        from cli import local

        local.down()


def demo(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The run to launch.")] = DEMO_FILE,
    port: Port = None,
    leave: Annotated[bool, typer.Option("--leave", help="End with the run instead of serving until Ctrl-C.")] = False,
) -> int:
    """Start everything, launch the shipped example, show how it gets on, and keep serving until Ctrl-C."""
    with _extras():
        from cli import demo as demonstration

        return demonstration.show(file, port, leave)


@contextmanager
def _extras() -> Iterator[None]:
    """Says what to install where something is missing, and makes errors of services those of a command."""
    try:
        from backend.embedded.errors import EmbeddedError
    except ImportError as error:
        raise _not_installed(error) from error
    try:
        yield
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    except EmbeddedError as error:
        raise CommandError(str(error), ExitCode.INFRASTRUCTURE) from error


def _not_installed(error: ImportError) -> CommandError:
    return CommandError(
        f'{error.name} is not installed, which this command needs: pip install "foredeck[server,embedded]".',
        ExitCode.INFRASTRUCTURE,
    )
