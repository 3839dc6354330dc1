"""The Celery app with a sign of life, so that a container's health check can tell a working process from a stuck one.

    celery -A backend.sign_of_life worker ...    touches the file after every task
    celery -A backend.sign_of_life beat ...      touches the file whenever it sends one
    python -m backend.sign_of_life               fails when the file is older than a minute

The reconciler runs every few seconds, so a file that grows old means that nothing is sent or nothing is done any more.
"""

import sys
import tempfile
import time
from pathlib import Path

from celery.signals import before_task_publish, task_postrun

SIGN = Path(tempfile.gettempdir()) / "foredeck-sign-of-life"
MAX_AGE_S = 60.0


def _touch(**_: object) -> None:
    SIGN.touch()


before_task_publish.connect(_touch)
task_postrun.connect(_touch)


def __getattr__(name: str) -> object:
    """`app`, made when Celery asks for it: checking for life needs none."""
    if name in {"app", "celery"}:
        from backend.celery_app import app  # noqa: PLC0415

        return app
    raise AttributeError(name)


def is_alive() -> bool:
    return SIGN.exists() and time.time() - SIGN.stat().st_mtime < MAX_AGE_S


if __name__ == "__main__":
    sys.exit(0 if is_alive() else f"{SIGN} is missing or older than {MAX_AGE_S:.0f} s")
