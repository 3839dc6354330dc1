"""Commands about runs that there are."""

from typing import Annotated

import typer

from cli.errors import ExitCode
from cli.labels import parsed
from cli.options import InProject, Json, LabelFilter, RunName, Search, Statuses, Timeout, Wait
from cli.output import console, errors, log_text, print_json, run_table, runs_table
from cli.progress import Follower, follow_log
from cli.service import connect, find


def register(app: typer.Typer) -> None:
    app.command("runs")(list_runs)
    app.command("show")(show)
    app.command("logs")(logs)
    app.command("stop")(stop)


def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    status: Statuses = None,
    search: Search = None,
    labels: LabelFilter = None,
    project: InProject = None,
    is_json: Json = False,
) -> None:
    """List runs, newest first."""
    with connect() as service:
        page = service.runs.page(
            limit=limit, status=status, search=search, labels=parsed(labels or []), project=project
        )
    if is_json:
        print_json(page.items)
    elif page.items:
        console.print(runs_table(page.items))
    else:
        console.print("No runs. Launch one: foredeck launch examples/arithmetic-eagle3.yaml --wait")


def show(run: RunName, is_json: Json = False) -> None:
    """Show a run: status, alarms, figures, attempts."""
    with connect() as service:
        found = service.runs.get(find(service, run))
        alarms = service.runs.alarms(found.id)
    if is_json:
        print_json(found.model_dump(mode="json") | {"alarms": [alarm.model_dump(mode="json") for alarm in alarms]})
    else:
        console.print(run_table(found, alarms))


def logs(
    *,
    run: RunName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print lines as they come, until it ends.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=2000, help="Newest lines.")] = 200,
    level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    search: Annotated[str | None, typer.Option(help="Lines that hold this text.")] = None,
    is_json: Json = False,
) -> None:
    """Print a run's log."""
    with connect() as service:
        run_id = find(service, run)
        page = service.runs.log(run_id, limit=limit, level=level, search=search)
        if is_json:
            print_json(page.items)
            return
        for line in page.items:
            console.print(log_text(line), soft_wrap=True)
        if follow:
            follow_log(service, console, service.runs.get(run_id), page.last_id or 0)


def stop(run: RunName, wait: Wait = False, timeout: Timeout = None, is_json: Json = False) -> int:
    """Stop a run."""
    with connect() as service:
        stopping = service.runs.stop(find(service, run))
        if wait:
            stopping = Follower(service, errors, timeout, is_quiet=is_json).until_ended(stopping)
    if is_json:
        print_json(stopping)
    else:
        console.print(f"{stopping.name}: {stopping.status}. {stopping.status_reason}", markup=False)
    return ExitCode.SUCCEEDED
