"""The curl examples of the documentation, run as they stand against the real service."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CURL = re.compile(r"\bcurl\b.*FOREDECK_URL", re.DOTALL)
BLOCKS = [
    pytest.param(match[1], id=f"{page.relative_to(REPOSITORY)}:{text[: match.start()].count(chr(10)) + 1}")
    for page in PAGES
    for text in [page.read_text()]
    for match in BLOCK.finditer(text)
    if CURL.search(match[1])
]

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(scope="module")
def run_id(service, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A green run of main, which readers have; blocks call it RUN. They may also have a body in run.json."""
    file = tmp_path_factory.mktemp("run") / "run.yaml"
    file.write_text("config: {drafter: {kind: eagle3}}\n")
    done = service.foredeck("launch", str(file), "--label", "branch=main", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    identity: str = json.loads(done.stdout)["id"]
    return identity


@pytest.mark.parametrize("text", BLOCKS)
def test_a_block_with_curl_runs(service, run_id: str, tmp_path: Path, text: str) -> None:
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    (tmp_path / "run.json").write_text(json.dumps({"name": "nightly", "config": {"drafter": {"kind": "eagle3"}}}))
    before = set(tmp_path.iterdir())
    environment = {
        "PATH": os.environ["PATH"],
        "CURL_HOME": str(tmp_path),
        "FOREDECK_URL": service.url,
        "FOREDECK_TOKEN": service.admin_token,
        "CI_PIPELINE_ID": "77",
    }
    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail", "-c", re.sub(r"\bRUN\b", run_id, text)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() or set(tmp_path.iterdir()) > before
    assert "null" not in done.stdout.split()


def test_there_are_such_blocks() -> None:
    assert len(BLOCKS) >= 4
