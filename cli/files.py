"""Files that commands write."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cli.errors import CommandError
from foredeck.export import Form

FORMS: dict[str, Form] = {".parquet": "parquet", ".csv": "csv"}


def form_of(output: Path) -> Form:
    """By the end of its name. Raises CommandError."""
    form = FORMS.get(output.suffix)
    if form is None:
        raise CommandError(f"--output {output}: must end with .parquet or .csv.")
    return form


def write_whole(output: Path, write: Callable[[BinaryIO], int]) -> int:
    """What was there stays until all is written; gives the size in bytes. Raises CommandError."""
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            size_bytes = write(file)
        part.replace(output)
    except OSError as error:
        raise CommandError(f"--output {output}: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return size_bytes
