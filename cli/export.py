"""Commands that save what a run measured and sampled."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli import export_runs
from cli.files import form_of, write_whole
from cli.options import Json, Metrics, RunName
from cli.output import console, print_json
from cli.service import connect, find
from foredeck import Foredeck

Output = Annotated[
    Path,
    typer.Option(metavar="FILE", dir_okay=False, help="The file to write, .parquet or .csv."),
]


def register(app: typer.Typer) -> None:
    app.command("samples")(samples)
    app.command("series")(series)
    app.command("export")(export_runs.export)


def samples(*, run: RunName, output: Output, is_json: Json = False) -> None:
    """Save a run's stored rollouts: in Parquet token by token, in CSV a line for each response."""
    form = form_of(output)
    _save(output, lambda service, file: service.export.samples(find(service, run), file, form=form), is_json)


def series(*, run: RunName, output: Output, names: Metrics = None, is_json: Json = False) -> None:
    """Save what a run has measured, a row for each point."""
    form = form_of(output)
    _save(
        output,
        lambda service, file: service.export.series(file, form=form, run_ids=[find(service, run)], names=names or []),
        is_json,
    )


def _save(output: Path, write: Callable[[Foredeck, BinaryIO], int], is_json: bool) -> None:
    with connect() as service:
        size_bytes = write_whole(output, lambda file: write(service, file))
    if is_json:
        print_json({"path": str(output), "size_bytes": size_bytes})
    else:
        console.print(f"{output}: {size_bytes} bytes", markup=False)
