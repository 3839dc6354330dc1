"""The demo: the shipped example, launched through the public REST API like any other run."""

from pathlib import Path

from backend.embedded.status import read_status
from cli import local, overrides
from cli.errors import CommandError, ExitCode
from cli.output import console
from cli.progress import Follower, finish
from foredeck import Foredeck
from foredeck.models import Run

LABEL = "demo"


def show(file: Path, port: int | None, is_leaving: bool) -> int:
    """Starts what does not run yet, launches the run unless an earlier demo has, and serves until Ctrl-C."""
    found = read_status(local.home())
    if found is not None and found.is_ready:
        console.print("Foredeck is up already; the demo uses it.")
        local.print_summary("`foredeck down` ends everything.")
        return _follow(file)
    code: int = ExitCode.SUCCEEDED
    with local.running_here(port):
        local.print_summary("Ctrl-C ends everything.")
        code = _follow(file)
        if not is_leaving:
            console.print("\nServing until Ctrl-C. The data stays: the next start takes it up again.")
            local.serve_for_ever()
    return code


def _follow(file: Path) -> int:
    with local.local_service() as service:
        run = _earlier(service) or _launch(service, file)
        console.print(f"{service.url}/runs/{run.id}", markup=False)
        return finish(console, Follower(service, console).until_ended(run))


def _earlier(service: Foredeck) -> Run | None:
    """The run of an earlier demo that succeeded or is on its way."""
    for item in service.runs.list(labels={LABEL: "true"}):
        if not item.is_ended or item.status == "succeeded":
            how = "has succeeded already" if item.is_ended else f"is {item.status}"
            console.print(f"The demo's run {item.name} {how}; nothing new is launched.", markup=False)
            return service.runs.get(item.id)
    return None


def _launch(service: Foredeck, file: Path) -> Run:
    if not file.exists():
        raise CommandError(f"{file} is not there: run the demo from a checkout, or give a file.")
    name, config = overrides.read_file(file)
    run = service.runs.launch({"name": name, "config": config, "labels": {LABEL: "true"}})
    console.print(f"Launched {run.name} through {service.url}/api/v1/runs", markup=False)
    return run
