"""Commands about sweeps: runs that are launched together and differ in some keys."""

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
import yaml
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli import overrides, yaml_numbers
from cli.errors import CommandError, ExitCode
from cli.labels import parsed
from cli.options import Assignments, Json, Labels, Priority, Project
from cli.output import console, number, print_json, status_text
from cli.service import connect, find
from cli.sweep_list import counts, list_sweeps
from foredeck import Foredeck
from foredeck.models import Sweep

SweepName = Annotated[str, typer.Argument(metavar="SWEEP", help="Id, start of an id, or name.")]
MIN_PREFIX = 4


def register(app: typer.Typer) -> None:
    sweeps = typer.Typer(help="Runs that differ in some keys, launched together.", no_args_is_help=True)
    sweeps.command("list")(list_sweeps)
    for command in (create, show, update, stop):
        sweeps.command(command.__name__)(command)
    app.add_typer(sweeps, name="sweep")


def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it; the runs' names begin with it.")],
    file: Annotated[Path | None, typer.Option(help="What the runs have in common: see examples/.")] = None,
    example: Annotated[str | None, typer.Option(metavar="NAME", help="One of the service's, in place of it.")] = None,
    run: Annotated[str | None, typer.Option(help="A run whose configuration they start from, in place of it.")] = None,
    assignments: Assignments = None,
    axes: Annotated[
        list[str] | None,
        typer.Option("--axis", metavar="KEY=[VALUES]", help="drafter.draft_length=[1,3,5]; several are combined."),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="In place of axes: a list in YAML of each run's keys and values."),
    ] = None,
    labels: Labels = None,
    project: Project = None,
    cluster: Annotated[str, typer.Option(help="Name of a registered cluster.")] = "local",
    priority: Priority = 0,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="Runs that may go on at once.")] = None,
    is_json: Json = False,
) -> None:
    """Launch a run for every point; none, when something is wrong with one of them."""
    patch = overrides.parse(assignments or [])
    body: dict[str, Any] = {
        "name": name,
        "axes": _axes(axes) if axes else None,
        "points": _points(points) if points else None,
        "labels": parsed(labels or []),
        "project": project,
        "cluster": cluster,
        "priority": priority,
        "max_concurrent": max_concurrent,
    }
    with connect() as service:
        body |= _base(service, file, example, run, patch)
        sweep = service.sweeps.launch({key: value for key, value in body.items() if value is not None})
        _print(service, sweep, is_json)


def show(sweep: SweepName, is_json: Json = False) -> None:
    """Show a sweep's runs: what each differs in, and what came of it."""
    with connect() as service:
        _print(service, service.sweeps.get(_find(service, sweep)), is_json)


def update(
    *,
    sweep: SweepName,
    name: Annotated[str | None, typer.Option(help="What people call it.")] = None,
    labels: Labels = None,
    notes: Annotated[str | None, typer.Option(help="Free text.")] = None,
    is_json: Json = False,
) -> None:
    """Change a sweep's name, labels or notes; its runs keep theirs. Labels that are given take the place of all."""
    if name is None and labels is None and notes is None:
        raise CommandError("Say what to change: --name, --label or --notes.")
    with connect() as service:
        given = None if labels is None else parsed(labels)
        _print(service, service.sweeps.update(_find(service, sweep), name=name, labels=given, notes=notes), is_json)


def stop(sweep: SweepName, is_json: Json = False) -> int:
    """Stop all runs of a sweep."""
    with connect() as service:
        _print(service, service.sweeps.stop(_find(service, sweep)), is_json)
    return ExitCode.SUCCEEDED


def _base(
    service: Foredeck, file: Path | None, example: str | None, run: str | None, patch: dict[str, Any]
) -> dict[str, Any]:
    if [file, example, run].count(None) != 2:
        raise CommandError("Say what the runs have in common by one of --file, --example and --run.")
    if file is not None:
        return {"config": overrides.merged(overrides.read_file(file)[1], patch)}
    source = {"example": example} if run is None else {"base_run_id": str(find(service, run))}
    return {**source, "overrides": patch}


def _axes(given: list[str]) -> dict[str, Any]:
    axes = {}
    for axis in given:
        key, separator, text = axis.partition("=")
        values = _yaml(text, f"--axis {axis}")
        if not separator or not key or not isinstance(values, list):
            raise CommandError(f"--axis {axis}: write key.path=[values], as in --axis drafter.draft_length=[1,3,5].")
        axes[key.strip()] = values
    return axes


def _points(file: Path) -> Any:
    try:
        return _yaml(file.read_text(), f"--points {file}")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--points {file} cannot be read: {error}") from error


def _yaml(text: str, where: str) -> Any:
    try:
        return yaml_numbers.load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"{where}: is not YAML.") from error


def _find(service: Foredeck, sweep: str) -> UUID:
    try:
        return UUID(sweep)
    except ValueError:
        pass
    prefix = sweep.lower() if len(sweep) >= MIN_PREFIX else None
    known = list(service.sweeps.list())
    named = [item for item in known if item.name == sweep]
    found = named or [item for item in known if prefix and str(item.id).startswith(prefix)]
    if len(found) == 1:
        return found[0].id
    if not found:
        raise CommandError(f"There is no sweep {sweep!r}.")
    candidates = "\n".join(f"  {item.id}  {item.name}" for item in found[:10])
    raise CommandError(f"{sweep!r} is not the name of one sweep, but of {len(found)}. Give an id:\n{candidates}")


def _print(service: Foredeck, sweep: Sweep, is_json: bool) -> None:
    if is_json:
        print_json(sweep)
        return
    console.print(f"{sweep.name}: {counts(sweep)}\n{service.url}/sweeps/{sweep.id}", markup=False)
    console.print(_table(sweep))


def _table(sweep: Sweep) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("ID", no_wrap=True)
    for key in sweep.keys:
        table.add_column(key, overflow="fold")
    for title in ("Status", "Accept. length", "Gen. speedup", "Reward"):
        table.add_column(title, justify="left" if title == "Status" else "right")
    for run in sweep.runs:
        point = run.sweep_point or {}
        values = [escape(json.dumps(point[key])) if key in point else "" for key in sweep.keys]
        figures = (run.acceptance_length, run.generation_speedup, run.reward)
        table.add_row(str(run.id)[:8], *values, Text.assemble(status_text(run.status)), *map(number, figures))
    return table
