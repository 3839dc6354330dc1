import json
import subprocess
import sys
from pathlib import Path

import pytest

from foredeck import Foredeck, ForedeckError


def test_credentials_come_from_variables_or_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    monkeypatch.delenv("FOREDECK_URL", raising=False)
    monkeypatch.delenv("FOREDECK_TOKEN", raising=False)
    with pytest.raises(ForedeckError, match=r"foredeck up.*FOREDECK_URL and FOREDECK_TOKEN") as caught:
        Foredeck.from_environment()
    assert not caught.value.is_infrastructure
    (tmp_path / "credentials.json").write_text(json.dumps({"url": "http://kept:1", "token": "fdk_kept"}))
    assert Foredeck.from_environment().url == "http://kept:1"
    monkeypatch.setenv("FOREDECK_URL", "http://given:2/")
    monkeypatch.setenv("FOREDECK_TOKEN", "fdk_given")
    assert Foredeck.from_environment().url == "http://given:2"


def test_it_stands_on_httpx_and_pydantic_alone() -> None:
    code = "import sys, foredeck; print(*[m for m in ('contract', 'cli', 'typer', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
