import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from rich.console import Console

from cli import export_runs
from cli.main import run
from foredeck import Foredeck

ClientOf = Callable[[Callable[[httpx.Request], httpx.Response]], Foredeck]
FIRST, SECOND = (UUID(int=number) for number in (1, 2))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, client_of: ClientOf, run_body: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a service with two runs was asked for, by path and parameters. A file holds the address it was asked by."""
    asked: list[tuple[str, Any]] = []
    runs = [run_body | {"id": str(id_), "name": name} for id_, name in ((FIRST, "one"), (SECOND, "two"))]

    def respond(request: httpx.Request) -> httpx.Response:
        parameters = request.url.params
        asked.append((request.url.path.removeprefix("/api/v1"), dict(parameters)))
        if not request.url.path.endswith("/runs"):
            return httpx.Response(200, content=str(request.url).encode())
        items = [run for run in runs if parameters.get("search", "") in run["name"]]
        return httpx.Response(200, json={"items": items, "next_cursor": None})

    monkeypatch.setattr(Foredeck, "from_environment", lambda **_: client_of(respond))
    return asked


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    written = io.StringIO()
    monkeypatch.setattr(export_runs, "console", Console(file=written, width=160))
    return written


def test_named_runs_are_written_to_one_file(asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "both.csv"
    assert run(["export", "two", str(FIRST), "--output", str(file), "--metric", "policy/loss", "--json"]) == 0
    wanted = {"runs": f"{SECOND},{FIRST}", "names": "policy/loss", "attempts": "newest"}
    assert asked[-1] == ("/export/series.csv", wanted)
    (saved,) = json.loads(capsys.readouterr().out)["files"]
    assert saved == {"path": str(file), "size_bytes": len(file.read_bytes())}


def test_filters_are_the_services_own(asked, tmp_path: Path) -> None:
    filters = ["--status", "succeeded", "--search", "k=3", "--label", "branch=main", "--project", "vision"]
    assert run(["export", *filters, "--attempts", "all", "--output", str(tmp_path / "x.parquet")]) == 0
    wanted = {"status": "succeeded", "search": "k=3", "label": "branch:main", "project": "vision", "attempts": "all"}
    assert asked == [("/export/series.parquet", wanted)]


def test_every_run(asked, tmp_path: Path) -> None:
    assert run(["export", "--all", "--output", str(tmp_path / "x.parquet")]) == 0
    assert asked == [("/export/series.parquet", {"runs": "all", "attempts": "newest"})]


def test_a_folder_gets_a_file_of_each_run(asked, tmp_path: Path, output: io.StringIO) -> None:
    folder = tmp_path / "new" / "files"
    assert run(["export", "--all", "--output", str(folder), "--form", "csv"]) == 0
    assert asked[1:] == [("/export/series.csv", {"runs": str(id_), "attempts": "newest"}) for id_ in (FIRST, SECOND)]
    assert {file.name for file in folder.iterdir()} == {f"{FIRST}.csv", f"{SECOND}.csv"}
    assert str(SECOND) in (folder / f"{SECOND}.csv").read_text()
    assert output.getvalue().count(" bytes") == 2


def test_a_folder_of_runs_that_match(
    asked, tmp_path: Path, output: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--search", "two", "--output", str(tmp_path)]) == 0
    assert [file.name for file in tmp_path.iterdir()] == [f"{SECOND}.parquet"]
    assert run(["export", "--search", "none", "--output", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": []}
    assert run(["export", "--search", "none", "--output", str(tmp_path)]) == 0
    assert "No run matches" in output.getvalue()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Say which runs"),
        (["one", "--all"], "Say which runs"),
        (["--all", "--status", "failed"], "Say which runs"),
        (["--label", "branch"], "write key=value"),
        (["--all", "--output", "x.xlsx"], "must end with .parquet or .csv"),
        (["three"], "no run 'three'"),
    ],
)
def test_what_cannot_be_exported(
    asked, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    output = [] if "--output" in arguments else ["--output", str(tmp_path / "x.csv")]
    assert run(["export", *arguments, *output, "--json"]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_so(asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    assert run(["export", "--all", "--output", str(tmp_path / "taken" / "files"), "--json"]) == 2
    assert "Not a directory" in json.loads(capsys.readouterr().out)["error"]
