"""This machine's installation: starting it, showing it, ending it."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from backend.embedded.home import Home
from backend.embedded.ports import DEFAULT_BASE_PORT, Ports
from backend.embedded.process import ServerProcess, last_lines
from backend.embedded.running import running
from backend.embedded.status import Status, read_status, stop_installation
from cli.errors import CommandError, ExitCode
from cli.output import console, duration, memory, print_json
from foredeck import Foredeck
from foredeck.client import credentials_path

DETACHED_TIMEOUT_S = 180.0


def up(port: int | None, is_quiet: bool) -> None:
    """Runs in the foreground until Ctrl-C."""
    with running_here(port):
        if not is_quiet:
            print_summary("Ctrl-C ends everything.")
        serve_for_ever()


@contextmanager
def running_here(port: int | None) -> Iterator[None]:
    """Everything runs as children of this process inside the block."""
    with running(home(), ports(port), os.environ, report_with_time()):
        yield


def serve_for_ever() -> None:
    """Until a signal interrupts it."""
    threading.Event().wait()


def up_detached(port: int | None, is_quiet: bool) -> None:
    """Starts a supervisor in the background and returns when all is up."""
    place = home()
    place.create()
    log = place.logs / "supervisor.log"
    log.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "cli.main", "up", "--quiet", *([] if port is None else ["--port", str(port)])]
    process = ServerProcess.spawn(argv, log=log, environment=os.environ | {"FOREDECK_HOME": str(place.root)})
    deadline = time.monotonic() + DETACHED_TIMEOUT_S
    while not _is_up(place, process.pid):
        if not process.is_alive() or time.monotonic() > deadline:
            process.stop()
            raise CommandError(f"Foredeck did not come up:\n{last_lines(log)}", ExitCode.INFRASTRUCTURE)
        time.sleep(0.1)
    if not is_quiet:
        print_summary("`foredeck down` ends everything.")


def _is_up(place: Home, pid: int) -> bool:
    found = read_status(place)
    return found is not None and found.is_ready and found.supervisor_pid == pid


def show_status(is_json: bool) -> bool:
    """Prints it; tells whether all is up."""
    found = read_status(home())
    if is_json:
        print_json(_plain(found))
    elif found is None:
        console.print(f"Nothing has been started in {home().root} yet: `foredeck up`.", markup=False)
    else:
        console.print(status_view(found))
    return found is not None and found.is_ready


def down() -> None:
    try:
        has_run = stop_installation(home())
    except TimeoutError as error:
        raise CommandError(str(error), ExitCode.TIMEOUT) from error
    console.print("Everything has ended." if has_run else "Nothing was running.")


def home() -> Home:
    return Home.from_environment(os.environ)


def ports(given: int | None) -> Ports:
    if given is not None:
        return Ports(given)
    variable = os.environ.get("FOREDECK_PORT") or str(DEFAULT_BASE_PORT)
    if not variable.isdecimal():
        raise CommandError(f"FOREDECK_PORT is {variable!r}, but must be a number: the first of five ports.")
    return Ports(int(variable))


def report_with_time() -> Callable[[str], None]:
    """Prints what is done, and when."""
    began = time.monotonic()

    def report(text: str) -> None:
        console.print(Text.assemble((f"{time.monotonic() - began:5.1f} s  ", "dim"), text))

    return report


def local_service() -> Foredeck:
    """The service on this machine, whatever FOREDECK_URL says."""
    kept = json.loads(credentials_path().read_text())
    return Foredeck(_require_status().url, kept["token"])


def print_summary(last_line: str) -> None:
    """What runs, and the link that opens the dashboard."""
    with local_service() as service:
        link = service.access.login_link()
    console.print()
    console.print(status_view(_require_status()))
    console.print(Text.assemble("\nOpen ", (link.url, "bold blue underline")), soft_wrap=True)
    console.print(f"The link works once; `foredeck login` prints another. {last_line}\n")


def _require_status() -> Status:
    found = read_status(home())
    if found is None:
        raise CommandError("Foredeck is not running: `foredeck up` starts it.", ExitCode.INFRASTRUCTURE)
    return found


def _plain(found: Status | None) -> dict[str, object]:
    if found is None:
        return {"is_ready": False, "is_supervised": False, "processes": []}
    plain = asdict(found) | {"memory_bytes": found.memory_bytes}
    return dict(json.loads(json.dumps(plain, default=str)))


def status_view(found: Status) -> Group:
    table = Table(box=None, pad_edge=False)
    for column in ("Service", "Where", "Process", "Memory", "Up for", "Log"):
        table.add_column(column, header_style="bold", justify="right" if column in {"Process", "Memory"} else "left")
    for process in sorted(found.processes, key=lambda each: (each.port or sys.maxsize, each.name)):
        table.add_row(
            process.name,
            f"127.0.0.1:{process.port}" if process.port else "-",
            str(process.pid) if process.is_running else "-",
            memory(process.memory_bytes),
            duration(process.uptime_s) if process.is_running else Text("not running", style="red"),
            process.log.name,
        )
    if not any(process.name == "Ray" for process in found.processes):
        table.add_row("Ray", "-", "-", "not started", "until a run needs it", "ray.log")
    logs = Text(f"\nLogs: {_short(found.home / 'logs')}", style="dim")
    return Group(Text(_headline(found), style="bold"), Text(), table, logs)


def _headline(found: Status) -> str:
    if found.is_ready:
        return f"Foredeck is up at {found.url}, using {memory(found.memory_bytes)} in all."
    if found.is_supervised:
        return f"Foredeck is starting (process {found.supervisor_pid})."
    if any(process.is_running for process in found.processes):
        return "The supervisor is gone, but some of its children run: `foredeck up` takes them over, `down` ends them."
    return "Foredeck is not running: `foredeck up` starts it."


def _short(path: Path) -> str:
    user_home = Path.home()
    return f"~/{path.relative_to(user_home)}" if path.is_relative_to(user_home) else str(path)
