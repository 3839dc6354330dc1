"""The command that saves what several runs measured."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.errors import CommandError
from cli.files import form_of, write_whole
from cli.labels import parsed
from cli.options import InProject, Json, LabelFilter, Metrics, Search, Statuses
from cli.output import console, print_json
from cli.service import connect, find
from foredeck import Foredeck
from foredeck.export import Attempts, Form

Save = Callable[..., int]
"""Foredeck.export.series, with what goes for every file."""


def export(
    *,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help="Ids, starts of ids, or names.")] = None,
    output: Annotated[
        Path, typer.Option(metavar="FILE|FOLDER", help="One .parquet or .csv file, or a folder with one of each run.")
    ],
    statuses: Statuses = None,
    search: Search = None,
    labels: LabelFilter = None,
    project: InProject = None,
    is_all: Annotated[bool, typer.Option("--all", help="Every run that you may see.")] = False,
    names: Metrics = None,
    attempts: Annotated[Attempts, typer.Option(help="Where several reached a step: the newest, or all.")] = "newest",
    form: Annotated[Form, typer.Option(help="Of the files in a folder.")] = "parquet",
    is_json: Json = False,
) -> None:
    """Save what several runs have measured, a row for each point: of those named, or of those that match."""
    wanted = {"status": statuses, "search": search, "labels": parsed(labels or []), "project": project}
    matching = {key: value for key, value in wanted.items() if value}
    if [bool(runs), bool(matching), is_all].count(True) != 1:
        raise CommandError("Say which runs: name some, or filter by --status, --search, --label, --project, or --all.")
    is_folder = output.is_dir() or not output.suffix
    form = form if is_folder else form_of(output)
    with connect() as service:

        def save(file: Any, **chosen: Any) -> int:
            return service.export.series(file, form=form, names=names or [], attempts=attempts, **chosen)

        if is_folder:
            saved = _save_each(service, output, form, runs or [], matching, save)
        else:
            chosen = _chosen(service, runs or [], matching)
            saved = {output: write_whole(output, lambda file: save(file, **chosen))}
    _print(saved, is_json)


def _chosen(service: Foredeck, runs: list[str], matching: Mapping[str, Any]) -> dict[str, Any]:
    """The service applies filters itself: they may choose more runs than an address can name."""
    if runs:
        return {"run_ids": [find(service, run) for run in runs]}
    return dict(matching) or {"run_ids": "all"}


def _save_each(
    service: Foredeck, folder: Path, form: Form, runs: list[str], matching: Mapping[str, Any], save: Save
) -> dict[Path, int]:
    """A file named by its id for each run."""
    run_ids = [find(service, run) for run in runs] or [run.id for run in service.runs.list(**matching)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--output {folder}: {error.strerror or error}.") from error
    files = {run_id: folder / f"{run_id}.{form}" for run_id in run_ids}
    return {
        file: write_whole(file, lambda opened, run_id=run_id: save(opened, run_ids=[run_id]))  # type: ignore[misc]
        for run_id, file in files.items()
    }


def _print(saved: Mapping[Path, int], is_json: bool) -> None:
    if is_json:
        print_json({"files": [{"path": str(file), "size_bytes": size} for file, size in saved.items()]})
        return
    for file, size in saved.items():
        console.print(f"{file}: {size} bytes", markup=False)
    if not saved:
        console.print("No run matches: nothing was written.")
