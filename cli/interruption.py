"""What becomes of a run when the command that waits for it is interrupted."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cli.output import errors
from foredeck import Foredeck
from foredeck.models import Run


@contextmanager
def stopping(service: Foredeck, run: Run, is_wanted: bool) -> Iterator[None]:
    """Ctrl-C or SIGTERM inside the block stops the run, where that is wanted: a cancelled CI job needs it no more."""
    if not is_wanted:
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        service.runs.stop(run.id)
        errors.print(f"Interrupted: {run.name} is asked to stop.", markup=False)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
