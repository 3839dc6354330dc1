"""Commands that save what runs measured and sampled."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from cli.errors import CommandError
from cli.options import Json, RunName
from cli.output import console, print_json
from cli.service import connect, find
from foredeck import Foredeck
from foredeck.export import Form

Output = Annotated[
    Path,
    typer.Option(metavar="FILE", dir_okay=False, help="The file to write, .parquet or .csv."),
]


def register(app: typer.Typer) -> None:
    app.command("samples")(samples)
    app.command("series")(series)


def samples(*, run: RunName, output: Output, is_json: Json = False) -> None:
    """Save a run's stored rollouts: in Parquet token by token, in CSV a line for each response."""
    form = _form(output)
    _save(output, lambda service, file: service.export.samples(find(service, run), file, form=form), is_json)


def series(
    *,
    run: RunName,
    output: Output,
    names: Annotated[
        list[str] | None, typer.Option("--metric", help="reward/train_mean; may be given again. All without it.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Save what a run has measured, a row for each point."""
    form = _form(output)
    _save(
        output,
        lambda service, file: service.export.series(file, form=form, run_ids=[find(service, run)], names=names or []),
        is_json,
    )


def _form(output: Path) -> Form:
    match output.suffix:
        case ".parquet":
            return "parquet"
        case ".csv":
            return "csv"
    raise CommandError(f"--output {output}: must end with .parquet or .csv.")


def _save(output: Path, write: Callable[[Foredeck, BinaryIO], int], is_json: bool) -> None:
    """What was there stays until all is written."""
    part = output.with_name(f"{output.name}.part")
    try:
        with connect() as service, part.open("wb") as file:
            size_bytes = write(service, file)
        part.replace(output)
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    if is_json:
        print_json({"path": str(output), "size_bytes": size_bytes})
    else:
        console.print(f"{output}: {size_bytes} bytes", markup=False)
