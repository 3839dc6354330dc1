"""Commands about runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import overrides
from cli.errors import CommandError, ExitCode
from cli.output import console, errors, log_text, print_json, run_table, runs_table
from cli.progress import Follower, finish, follow_log
from cli.service import connect, find
from foredeck import Foredeck
from foredeck.models import Run

RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id, start of an id, or name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the configuration: grpo.num_steps=20.")
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the new run.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end and exit with its result.")]
Follow = Annotated[bool, typer.Option("--follow", help="Print its log until it ends; implies --wait.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer.")]


def register(app: typer.Typer) -> None:
    app.command("launch")(launch)
    app.command("runs")(list_runs)
    app.command("show")(show)
    app.command("logs")(logs)
    app.command("samples")(samples)
    app.command("wait")(wait)
    app.command("stop")(stop)
    app.command("clone")(clone)


def launch(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A run configuration: see examples/.")],
    assignments: Assignments = None,
    name: Name = None,
    labels: Annotated[list[str] | None, typer.Option("--label", metavar="KEY=VALUE")] = None,
    cluster: Annotated[str, typer.Option(help="Name of a registered cluster.")] = "local",
    max_attempts: Annotated[
        int, typer.Option(min=1, help="Attempts that may end without a new checkpoint before the run fails.")
    ] = 3,
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    is_json: Json = False,
) -> int:
    """Launch a run."""
    own_name, config = overrides.read_file(file)
    body = {
        "name": name or own_name,
        "config": overrides.merged(config, overrides.parse(assignments or [])),
        "labels": _labels(labels or []),
        "cluster": cluster,
        "max_attempts": max_attempts,
    }
    with connect() as service:
        return _launched(service, service.runs.launch(body), wait=wait, follow=follow, timeout=timeout, is_json=is_json)


def clone(
    *,
    run: RunName,
    assignments: Assignments = None,
    name: Name = None,
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    is_json: Json = False,
) -> int:
    """Launch a run like another, with changes."""
    body: dict[str, Any] = {"overrides": overrides.parse(assignments or [])}
    if name is not None:
        body["name"] = name
    with connect() as service:
        return _launched(
            service,
            service.runs.clone(find(service, run), body),
            wait=wait,
            follow=follow,
            timeout=timeout,
            is_json=is_json,
        )


def _launched(service: Foredeck, run: Run, *, wait: bool, follow: bool, timeout: float | None, is_json: bool) -> int:
    if not (wait or follow):
        if is_json:
            print_json(run)
        else:
            console.print(f"Launched {run.name}: {run.id}\n{service.url}/runs/{run.id}", markup=False)
        return ExitCode.SUCCEEDED
    return _until_ended(service, run, follow, timeout, is_json)


def _until_ended(service: Foredeck, run: Run, follow: bool, timeout: float | None, is_json: bool) -> int:
    if not is_json:
        console.print(f"{run.name}: {service.url}/runs/{run.id}", markup=False)
    # Progress goes to standard error, so that the output is the result alone.
    ended = (
        follow_log(service, errors if is_json else console, run)
        if follow
        else Follower(service, errors, timeout, is_quiet=is_json).until_ended(run)
    )
    if is_json:
        print_json(ended)
    return finish(errors if is_json else console, ended)


def list_runs(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    status: Annotated[str | None, typer.Option(help="Comma-separated: running,queued.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of the name or notes.")] = None,
    is_json: Json = False,
) -> None:
    """List runs, newest first."""
    with connect() as service:
        page = service.runs.page(limit=limit, status=status, search=search)
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


def samples(
    *,
    run: RunName,
    output: Annotated[Path, typer.Option(metavar="FILE.parquet", dir_okay=False, help="The file to write.")],
    is_json: Json = False,
) -> None:
    """Save a run's stored rollouts, token by token, as a Parquet file: a row for each verification round."""
    part = output.with_name(f"{output.name}.part")
    try:
        with connect() as service, part.open("wb") as file:
            size_bytes = service.runs.download(find(service, run), "samples.parquet", file)
        part.replace(output)
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    if is_json:
        print_json({"path": str(output), "size_bytes": size_bytes})
    else:
        console.print(f"{output}: {size_bytes} bytes", markup=False)


def wait(run: RunName, timeout: Timeout = None, follow: Follow = False, is_json: Json = False) -> int:
    """Wait for a run's end and exit with its result."""
    with connect() as service:
        return _until_ended(service, service.runs.get(find(service, run)), follow, timeout, is_json)


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


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise CommandError(f"--label {pair}: write key=value.")
        labels[key] = value
    return labels
