import subprocess
import sys

import pytest

from backend.settings import REPOSITORY

HEAVY = {"ray", "torch", "numpy", "plotly", "pandas", "transformers"}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("backend.main", HEAVY | {"celery", "kombu"}),
        ("backend.launcher.service", HEAVY | {"celery"}),
        ("backend.celery_app", HEAVY | {"sqlalchemy", "fastapi"}),
    ],
)
def test_an_idle_process_stays_small(module, unwanted):
    """What beat, API and worker load before there is anything to do."""
    script = f"import sys, {module}; print(*sorted(set(sys.modules) & {unwanted!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
