import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from cli.main import run
from foredeck import Foredeck

ClientOf = Callable[[Callable[[httpx.Request], httpx.Response]], Foredeck]
RUN = str(uuid4())


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, client_of: ClientOf) -> Callable[[httpx.Response], list[str]]:
    """Lets the command meet this answer; the paths that were asked for."""

    def serve(answer: httpx.Response) -> list[str]:
        asked: list[str] = []

        def respond(request: httpx.Request) -> httpx.Response:
            asked.append(request.url.path)
            return answer

        monkeypatch.setattr(Foredeck, "from_environment", lambda **_: client_of(respond))
        return asked

    return serve


def test_samples_are_saved(serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = serve(httpx.Response(200, content=b"PAR1...PAR1"))
    file = tmp_path / "rounds.parquet"
    assert run(["samples", RUN, "--output", str(file), "--json"]) == 0
    assert asked == [f"/api/v1/runs/{RUN}/samples.parquet"]
    assert file.read_bytes() == b"PAR1...PAR1"
    assert json.loads(capsys.readouterr().out) == {"path": str(file), "size_bytes": 11}
    assert list(tmp_path.iterdir()) == [file]


def test_a_refusal_leaves_what_was_there(serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve(httpx.Response(404, json={"detail": "There is no such run.", "errors": []}))
    file = tmp_path / "rounds.parquet"
    file.write_bytes(b"before")
    assert run(["samples", RUN, "--output", str(file), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "There is no such run."
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_said_so(serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    serve(httpx.Response(200, content=b"PAR1"))
    assert run(["samples", RUN, "--output", str(tmp_path / "none" / "rounds.parquet"), "--json"]) == 2
    assert "No such file or directory" in json.loads(capsys.readouterr().out)["error"]


def test_the_form_of_series_is_the_files_end(serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = serve(httpx.Response(200, content=b"run_id\n"))
    assert run(["series", RUN, "--output", str(tmp_path / "s.csv"), "--metric", "reward/train_mean", "--json"]) == 0
    assert asked == ["/api/v1/export/series.csv"]
    capsys.readouterr()
    assert run(["series", RUN, "--output", str(tmp_path / "s.xlsx"), "--json"]) == 2
    assert "must end with .parquet or .csv" in json.loads(capsys.readouterr().out)["error"]
