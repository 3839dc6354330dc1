"""The rows of a source, each with its place for who must mend it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from contract.config.dataset import HubSource, JsonlSource, ParquetSource, SourceConfig


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dataset."""

    number: int
    """Line of a JSONL file, else the row's number; from 1, over all files of the source."""
    values: Mapping[str, Any]


def read_rows(source: SourceConfig, field: str) -> Iterator[Row]:
    """All rows in order. Raises ValueError naming the configuration's field, the value and the mend."""
    match source:
        case JsonlSource():
            rows = _jsonl_rows(source, field)
        case ParquetSource():
            rows = _parquet_rows(source, field)
        case HubSource():
            rows = _hub_rows(source, field)
    yield from rows


def _jsonl_rows(source: JsonlSource, field: str) -> Iterator[Row]:
    path = Path(source.path)
    if not path.is_file():
        raise ValueError(f"{field}.path = {source.path} is no file on this machine: name one that every machine sees")
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield Row(number, _parse(line, f"{field}.path = {source.path}, line {number}"))


def _parse(line: str, place: str) -> Mapping[str, Any]:
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place} is not JSON ({error}): mend the line or remove it") from error
    if not isinstance(values, dict):
        raise ValueError(f"{place} is not an object but {line.strip()[:80]}: give each row its fields by name")
    return values


def _parquet_rows(source: ParquetSource, field: str) -> Iterator[Row]:
    parquet = _library("pyarrow.parquet", field)
    path = Path(source.path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise ValueError(f"{field}.path = {source.path} is neither a Parquet file nor a folder of *.parquet")
    number = 0
    for file in files:
        try:
            for batch in parquet.ParquetFile(file).iter_batches():
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
        except import_module("pyarrow").ArrowInvalid as error:
            raise ValueError(f"{field}.path = {source.path}: {file} cannot be read as Parquet: {error}") from error


def _hub_rows(source: HubSource, field: str) -> Iterator[Row]:
    datasets = _library("datasets", field)
    datasets.disable_progress_bars()  # they are for terminals, and this is a job's log
    try:
        rows = datasets.load_dataset(source.name, source.subset, split=source.split, revision=source.revision)
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:  # the hub's own are among the two
        # Another attempt may reach the hub.
        kind = ConnectionError if isinstance(error, ConnectionError) else ValueError
        raise kind(
            f"{field}.name = {source.name} with subset {source.subset}, split {source.split} and revision "
            f"{source.revision} cannot be loaded: {error}. Check the name, and that this machine reaches the hub; else "
            "download it and give its folder as name"
        ) from error
    for number, values in enumerate(rows, start=1):
        yield Row(number, values)


def _library(name: str, field: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{field} needs the package {name.partition('.')[0]}: install foredeck[data] on the cluster"
        ) from error
